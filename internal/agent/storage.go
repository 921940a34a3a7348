package agent

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/member"
)

// A database may not take more of the disk than the storage that it was given: the others
// of the host have theirs there. PostgreSQL knows no such limit. So the size is measured,
// the more often the less is left, and the primary is told when there is none.

const (
	// fastest is how many bytes a second a database is taken to grow at most.
	fastest = 1 << 30
	// sizeShare of the time may be spent on measuring, as one in so many.
	sizeShare = 20
	// measureTimeout bounds how long it may take to look at every file.
	measureTimeout = time.Minute
	// mostSorted is what a query may keep on disk for itself where there is no room, in bytes.
	mostSorted = 64 << 20
)

// gauge measures the size of one database, beside whoever wants to know it: a large one
// takes longer than anybody may wait.
type gauge struct {
	mu    sync.Mutex
	busy  bool          // guarded by mu
	bytes int64         // guarded by mu; as of at
	at    time.Time     // guarded by mu
	took  time.Duration // guarded by mu
}

// dueAfter is for how long a size is good: until the limit could be passed by much.
func dueAfter(bytes, limit int64, took time.Duration) time.Duration {
	wait := loginEvery
	if limit > 0 {
		left := time.Duration(float64(limit-bytes) / fastest * float64(time.Second))
		wait = max(probeEvery, min(left, wait))
	}
	return max(wait, sizeShare*took)
}

// last is what was measured last, 0 before the first time. It has measure called, in a
// goroutine, if that is too old for this limit.
func (g *gauge) last(limit int64, measure func() (int64, error)) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.busy && time.Since(g.at) >= dueAfter(g.bytes, limit, g.took) {
		g.busy = true
		go g.look(measure)
	}
	return g.bytes
}

func (g *gauge) look(measure func() (int64, error)) {
	began := time.Now()
	bytes, err := measure()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy, g.at, g.took = false, time.Now(), time.Since(began)
	if err == nil {
		g.bytes = bytes
	}
}

// isFull: a database that was full is so until a fiftieth is free, so that its users are not
// let in and stopped in turns.
func isFull(was bool, size, limit int64) bool {
	if was {
		limit -= limit / 50
	}
	return limit > 0 && size >= limit
}

// size is how many bytes a database has, as was measured last.
func (p *prober) size(ctx context.Context, target member.Assignment) int64 {
	ctx = context.WithoutCancel(ctx) // the look that asks does not wait
	return p.gauge.last(target.Limits.StorageBytes, func() (int64, error) {
		bytes, err := p.measure(ctx, target)
		if err != nil {
			p.agent.Log.Info("measure storage", "member", p.id, "error", err)
		}
		return bytes, err
	})
}

func (p *prober) measure(ctx context.Context, target member.Assignment) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	config, err := p.agent.monitorConfig(target)
	if err != nil {
		return 0, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	return postgres.StorageSize(ctx, conn)
}

// holdStorage has the primary refuse what would take more storage, or let it through again.
// Nothing changes before the size is known. It answers what PostgreSQL does now: "on",
// "off", or "" for one that knows of no limit.
func (p *prober) holdStorage(ctx context.Context, target member.Assignment, facts postgres.Facts, size int64) string {
	said, limit := facts.StorageFull, target.Limits.StorageBytes
	if facts.InRecovery || said == "" || size == 0 {
		return said
	}
	was := said == "on"
	full := isFull(was, size, limit)
	if full == was && (!full || size < limit) {
		return said
	}
	conn, err := p.agent.admin(ctx, target)
	if err == nil {
		defer conn.Close(ctx)
		if full != was {
			err = postgres.SetStorageFull(ctx, conn, full)
		}
		if err == nil && full {
			err = postgres.CancelSorts(ctx, conn, mostSorted)
		}
	}
	if err != nil {
		p.agent.Log.Warn("hold storage", "member", p.id, "error", err)
		return said
	}
	if full == was {
		return said
	}
	p.agent.Log.Info("storage", "member", p.id, "full", full, "bytes", size, "limit", limit)
	if full {
		return "on"
	}
	return "off"
}
