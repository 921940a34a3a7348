package database

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/host/logfile"
	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// How long a member's log files are kept, and how much room they may take.
const (
	// retentionParameter is RDS's own, in minutes.
	retentionParameter = "rds.log_retention_period"
	defaultRetention   = 3 * 24 * time.Hour
	// Logs may take a twentieth of the allocated storage, within these bounds.
	logShare      = 20
	leastLogBytes = 64 << 20
	mostLogBytes  = 4 << 30
	// trimEvery bounds by how much they are more for a while.
	trimEvery = 5 * time.Second
)

// logDir is where the PostgreSQL of a member writes its log.
func (a *Host) logDir(id string) logfile.Dir {
	return logfile.Dir{Root: a.MemberDir(id), Sub: patroni.LogDir, Owner: id}
}

// logsOf is logDir for someone else's idea of a member.
func (a *Host) logsOf(id string) (logfile.Dir, bool) {
	if !agent.IsMemberID(id) {
		return logfile.Dir{}, false
	}
	return a.logDir(id), true
}

// logKeeper keeps the log files of one member from growing old and large. It works
// beside the runner, which must not wait for a disk.
type logKeeper struct {
	dir   logfile.Dir
	log   *slog.Logger
	every time.Duration

	mu        sync.Mutex
	retention time.Duration // guarded by mu
	limit     int64         // guarded by mu; bytes
}

func newLogKeeper(dir logfile.Dir, log *slog.Logger) *logKeeper {
	return &logKeeper{dir: dir, log: log, every: trimEvery, retention: defaultRetention, limit: mostLogBytes}
}

// aim takes over what an assignment says.
func (k *logKeeper) aim(a member.Assignment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.retention, k.limit = logRetention(a), logLimit(a)
}

// logRetention is what a parameter group says, of the member or of all.
func logRetention(a member.Assignment) time.Duration {
	text := cmp.Or(a.Parameters[retentionParameter], a.Cluster.Parameters[retentionParameter])
	minutes, err := strconv.ParseFloat(text, 64)
	if err != nil || !(minutes >= 1 && minutes <= math.MaxInt32) {
		return defaultRetention
	}
	return time.Duration(minutes) * time.Minute
}

func logLimit(a member.Assignment) int64 {
	if a.Limits.StorageBytes <= 0 {
		return mostLogBytes
	}
	return min(max(a.Limits.StorageBytes/logShare, leastLogBytes), mostLogBytes)
}

func (k *logKeeper) run(ctx context.Context) {
	failing := false
	for pace.Sleep(ctx, k.every) {
		err := k.trim(time.Now())
		if err != nil && !failing {
			k.log.Warn("trim logs", "error", err)
		}
		failing = err != nil
	}
}

func (k *logKeeper) trim(now time.Time) error {
	k.mu.Lock()
	retention, limit := k.retention, k.limit
	k.mu.Unlock()
	return k.dir.Trim(now.Add(-retention), limit)
}
