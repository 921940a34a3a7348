package probe

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// A database may not take more of the disk than the storage that it was given: the others
// of the host have theirs there. PostgreSQL knows no such limit. So the size is measured,
// the more often the less is left, and the primary is told when there is none.

const (
	// Fastest is how many bytes a second a database is taken to grow at most.
	Fastest = 1 << 30
	// sizeShare of the time may be spent on measuring, as one in so many.
	sizeShare = 20
	// measureTimeout bounds how long it may take to look at every file.
	measureTimeout = time.Minute
	// mostSorted is what a query may keep on disk for itself where there is no room, in bytes.
	mostSorted = 64 << 20
	// MostOver: a database that has so much more than it was given, or a tenth, has found another
	// way to take storage than those that are refused where it is full.
	MostOver = 2 << 30
)

// gauge measures the size of one database, beside whoever wants to know it: a large one
// takes longer than anybody may wait.
type gauge struct {
	mu    sync.Mutex
	busy  bool           // guarded by mu
	usage postgres.Usage // guarded by mu; as of at
	at    time.Time      // guarded by mu
	took  time.Duration  // guarded by mu
}

// dueAfter is for how long a size is good: until the limit could be passed by much.
func dueAfter(bytes, limit int64, took time.Duration) time.Duration {
	wait := loginEvery
	if limit > 0 {
		left := time.Duration(float64(limit-bytes) / Fastest * float64(time.Second))
		wait = max(Every, min(left, wait))
	}
	return max(wait, sizeShare*took)
}

// last is what was measured last, and when; nothing before the first time. It has measure
// called, in a goroutine, if that is too old for this limit.
func (g *gauge) last(limit int64, measure func() (postgres.Usage, error)) (postgres.Usage, time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.busy && time.Since(g.at) >= dueAfter(g.usage.Bytes, limit, g.took) {
		g.busy = true
		go g.look(measure)
	}
	return g.usage, g.at
}

// look measures. What was counted before an error counts where it is more than was known:
// nobody can hide what a database has by making it take long.
func (g *gauge) look(measure func() (postgres.Usage, error)) {
	began := time.Now()
	usage, err := measure()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy, g.at, g.took = false, time.Now(), time.Since(began)
	if err == nil || usage.Bytes > g.usage.Bytes {
		g.usage = usage
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

// StorageLevel is what a primary should be told, after what it was told.
func StorageLevel(was string, size, limit int64) string {
	if !isFull(was != postgres.StorageLeft, size, limit) {
		return postgres.StorageLeft
	}
	over := limit + limit/10 + MostOver
	if was == postgres.StorageOver {
		over = limit + limit/20 + MostOver/2
	}
	if size >= over {
		return postgres.StorageOver
	}
	return postgres.StorageFull
}

// usage is what a database has, as was measured last.
func (p *Prober) usage(ctx context.Context, target member.Assignment) (postgres.Usage, time.Time) {
	ctx = context.WithoutCancel(ctx) // the look that asks does not wait
	return p.gauge.last(target.Limits.StorageBytes, func() (postgres.Usage, error) {
		ctx, cancel := context.WithTimeout(ctx, measureTimeout)
		defer cancel()
		usage, err := postgres.MeasureUsage(ctx, p.agent.UserOf(p.id), filepath.Join(p.agent.MemberDir(p.id), patroni.DataDir))
		if err != nil {
			p.agent.Log.Info("measure storage", "member", p.id, "error", err)
		}
		return usage, err
	})
}

// storageHold is what a prober did last where there is no storage left.
type storageHold struct {
	since time.Time // by the server's clock; zero: another agent told it
	sorts time.Time // those measured then were ended
}

// holdStorage has the primary refuse what would take more storage, or let it through again.
// Nothing changes before the size is known. It answers what PostgreSQL does now, or ""
// for one that knows of no limit.
func (p *Prober) holdStorage(ctx context.Context, target member.Assignment, facts postgres.Facts, usage postgres.Usage, at time.Time) string {
	said := facts.StorageFull
	if facts.InRecovery || said == "" || usage.Bytes == 0 {
		return said
	}
	limit := target.Limits.StorageBytes
	level := StorageLevel(said, usage.Bytes, limit)
	if said == postgres.StorageLeft && level == said {
		return said
	}
	conn, err := dial.Admin(ctx, p.agent, target)
	if err == nil {
		defer conn.Close(ctx)
		level, err = p.tellStorage(ctx, conn, said, level)
	}
	if err == nil && level != postgres.StorageLeft && at.After(p.hold.sorts) {
		p.hold.sorts = at
		err = postgres.EndSorts(ctx, conn, usage, mostSorted)
	}
	if err != nil {
		p.agent.Log.Warn("hold storage", "member", p.id, "error", err)
		return said
	}
	if level != said {
		p.agent.Log.Info("storage", "member", p.id, "full", level, "bytes", usage.Bytes, "limit", limit)
	}
	return level
}

// tellStorage says it, and stops who began before. Statements are cancelled first, and a
// session is ended that goes on at the next look. It answers what was said.
func (p *Prober) tellStorage(ctx context.Context, conn *pgx.Conn, said, level string) (string, error) {
	if level == said && !p.hold.since.IsZero() {
		return level, postgres.EndWriters(ctx, conn, level, p.hold.since)
	}
	since, err := postgres.SetStorage(ctx, conn, level)
	if err != nil && level == postgres.StorageOver { // the module is of a release that does not know it
		level = postgres.StorageFull
		since, err = postgres.SetStorage(ctx, conn, level)
	}
	if err != nil || level == postgres.StorageLeft {
		return level, err
	}
	p.hold.since = since
	return level, postgres.CancelWrites(ctx, conn)
}
