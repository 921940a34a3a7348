package watchdog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/hang"
	"howdah/internal/model/member"
)

const (
	// writeLook is how often it is decided whether to write.
	writeLook = time.Second
	// writeIdle is how long a database that nobody writes to is taken at its word. A write
	// costs it some 150 bytes of WAL, one transaction number, and no table.
	writeIdle = 15 * time.Second
)

// writeProbe commits a small write to a primary, as a user would, and says for how long
// that has waited, its login included: the judge of hangs finds out what it waits for.
// Where users' own writes reach the disk, they are proof enough, and it writes nothing.
// Waiting for standbys is no part of it: that is not the disk's fault.
type writeProbe struct {
	agent    *agent.Agent
	patience hang.Patience

	mu       sync.Mutex
	began    time.Time // guarded by mu: of the write that is under way
	answered time.Time // guarded by mu
	round    int       // guarded by mu: of writes; that of an older server counts no more

	// All below belongs to the watch.
	looked  time.Time
	proved  time.Time // something reached the disk last
	flushed postgres.Position
}

// waiting is since when a write has been under way; zero: none is.
func (p *writeProbe) waiting() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began
}

func (p *writeProbe) answeredAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered
}

// forget gives up a write that is under way: it is another server now.
func (p *writeProbe) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = time.Time{}
	p.round++
	p.proved, p.flushed = time.Time{}, postgres.Position{}
}

// poke begins a write if it is time for one, and waits for nothing.
func (p *writeProbe) poke(ctx context.Context, m member.Assignment, probe *probe.Prober) {
	now := time.Now()
	if now.Sub(p.looked) < writeLook {
		return
	}
	p.looked = now
	if !p.wanted(probe.Last(), now) || !p.waiting().IsZero() {
		return
	}
	p.mu.Lock()
	p.began = now
	p.round++
	round := p.round
	p.mu.Unlock()
	go p.write(ctx, m, round)
}

// wanted: nothing was seen to reach the disk for a while, or something waits for it.
func (p *writeProbe) wanted(s probe.Sight, now time.Time) bool {
	position := s.Facts.Position
	advanced := position.Flushed > p.flushed.Flushed
	p.flushed = position
	if advanced && now.Sub(s.At) < 2*probe.Every {
		p.proved = now
	}
	proved := now.Sub(hang.Later(p.proved, p.answeredAt()))
	behind := position.Inserted > position.Flushed && !advanced
	return behind && proved >= probe.Every || proved >= writeIdle
}

// write commits. An error is an answer: it did not wait for the disk.
func (p *writeProbe) write(ctx context.Context, m member.Assignment, round int) {
	err := p.commit(ctx, m)
	var refused *pgconn.PgError
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.round != round {
		return
	}
	p.began = time.Time{}
	if now := time.Now(); err == nil || errors.As(err, &refused) {
		p.answered = now
	}
}

// commit waits for the disk, for as long as it takes.
func (p *writeProbe) commit(ctx context.Context, m member.Assignment) error {
	config, err := dial.AdminConfig(p.agent, m)
	if err != nil {
		return err
	}
	config.RuntimeParams["synchronous_commit"] = "local"
	// A login may wait for a dead disk too, and that has to be found before this ends.
	config.ConnectTimeout = 2 * hang.SlowDisk * p.patience.Stall
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return postgres.Stroke(ctx, conn)
}
