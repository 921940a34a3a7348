package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"howdah/internal/host/hostapi"
	"howdah/internal/host/logfile"
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
func (a *Agent) logDir(id string) logfile.Dir {
	return logfile.Dir{Root: a.memberDir(id), Sub: patroni.LogDir, Owner: id}
}

// logsOf is logDir for someone else's idea of a member.
func (a *Agent) logsOf(id string) (logfile.Dir, bool) {
	if !memberIDForm.MatchString(id) {
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
	for sleep(ctx, k.every) {
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

// listenForControl has the agent answer control planes, by certificates of the home
// on both sides. Databases do not depend on it: an agent that cannot listen goes on
// without.
func (a *Agent) listenForControl(ctx context.Context) (answer func(context.Context) error) {
	l, err := a.controlListener(ctx)
	if err != nil {
		a.Log.Warn("listen for control planes: logs of this host cannot be shown", "error", err)
		return func(context.Context) error { return nil }
	}
	a.listen = l.Addr().String()
	srv := &http.Server{
		Handler: hostapi.AgentHandler(hostapi.LogHandler(a.logsOf, a.Log), hostapi.SettingHandler(a.checkSetting, a.Log)), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
	}
	return func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
		defer stop()
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.Log.Warn("answer control planes", "error", err)
		}
		return nil
	}
}

func (a *Agent) controlListener(ctx context.Context) (net.Listener, error) {
	config, err := a.Identity.ServerTLS()
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	l, err := a.listenFrom(ctx, controlPort)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, config), nil
}

// The ports that an agent listens on: the first free ones, of a few.
const (
	controlPort = member.FirstAgentPort
	portTries   = 20
)

// listenFrom listens on the host's address, on the first port that is free.
func (a *Agent) listenFrom(ctx context.Context, first int) (net.Listener, error) {
	var last error
	for port := first; port < first+portTries; port++ {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(a.Address, strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, fmt.Errorf("listen: %w", last)
}
