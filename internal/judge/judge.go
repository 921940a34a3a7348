package judge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"howdah/internal/engine/patroni"
	"howdah/internal/fence"
	"howdah/internal/member"
	"howdah/internal/plan"
	"howdah/internal/reconcile"
	"howdah/internal/state"
)

const (
	// look is how often the judge looks.
	look = 100 * time.Millisecond
	// warmUp is how long a new judge only listens, so that every host is heard
	// before any is judged.
	warmUp = 3 * time.Second
)

// Config is what a judge needs. All fields but Stonith are required.
type Config struct {
	Store *state.Store
	Cache *state.Cache // of state.Root and patroni.Namespace
	Pulse *Pulse
	// Detection is after how long a silent host counts as lost: 2 s by default.
	Detection time.Duration
	// Stonith is the operator's command that kills a host for certain, or "".
	Stonith string
	Log     *slog.Logger
}

// DefaultDetection is the default of Config.Detection.
const DefaultDetection = 2 * time.Second

// Judge is the judge of a home.
type Judge struct {
	Config
	started time.Time
	open    map[string]*trial // by database; belongs to Run's goroutine
	closed  chan string       // databases whose trial is over
}

// New makes a judge.
func New(cfg Config) *Judge {
	return &Judge{Config: cfg, open: map[string]*trial{}, closed: make(chan string)}
}

// Run judges until ctx ends, that is, as long as this control plane leads.
func (j *Judge) Run(ctx context.Context) error {
	if err := j.Cache.Loaded(ctx); err != nil {
		return nil
	}
	j.started = time.Now()
	j.resume(ctx)
	timer := time.NewTicker(look)
	defer timer.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			for _, t := range j.open {
				<-t.done
			}
			return nil
		case database := <-j.closed:
			delete(j.open, database)
		case <-timer.C:
			if pause := time.Since(last) - look; pause > 5*look {
				j.Pulse.Stall(pause)
			}
			last = time.Now()
			j.round(ctx)
		}
	}
}

// round judges every host once.
func (j *Judge) round(ctx context.Context) {
	for _, h := range state.LoadAll[member.Host](j.Cache, state.HostRoot) {
		silence := j.Pulse.Silence(h.Value.Name)
		if err := j.pronounce(ctx, h.Value.Name, silence); err != nil && ctx.Err() == nil {
			j.Log.Warn("record judgement", "host", h.Value.Name, "error", err)
		}
		if silence > j.suspicion() && time.Since(j.started) > warmUp {
			j.suspect(ctx, h.Value.Name)
		}
	}
}

// suspicion is after which silence witnesses are asked: early enough that they
// have answered when the host counts as lost.
func (j *Judge) suspicion() time.Duration { return j.Detection * 6 / 10 }

// pronounce records a host as alive or lost, when that changed.
func (j *Judge) pronounce(ctx context.Context, host string, silence time.Duration) error {
	old, err := state.Load[reconcile.Liveness](j.Cache, state.Live(host))
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	alive := silence < j.Detection
	if alive && !j.Pulse.Heard(host) || !alive && time.Since(j.started) < warmUp {
		return nil // not known yet
	}
	if err == nil && old.Value.Alive == alive {
		return nil
	}
	j.Log.Info("host", "host", host, "alive", alive, "silent_for", silence.Round(time.Millisecond).String())
	revision, err := j.Store.Commit(ctx, state.Put(state.Live(host), reconcile.Liveness{Alive: alive, Since: time.Now().UTC()}))
	if err != nil {
		return err
	}
	return j.Cache.WaitRevision(ctx, revision)
}

// suspect opens a trial for every primary on a silent host.
func (j *Judge) suspect(ctx context.Context, host string) {
	for _, l := range state.LoadAll[plan.Layout](j.Cache, state.LayoutRoot) {
		if j.open[l.Value.ID] != nil {
			continue
		}
		leader, _, _ := j.Cache.Raw(patroni.LeaderKey(l.Value.ID))
		for _, m := range l.Value.Members {
			if m.Host == host && m.Name == string(leader) {
				j.try(ctx, l.Value, m)
			}
		}
	}
}

// try opens the trial of one primary.
func (j *Judge) try(ctx context.Context, layout plan.Layout, m plan.Placed) {
	leadership, err := fence.Read(ctx, j.Store.Client, layout.ID)
	if err != nil || leadership.Leader != m.Name || !leadership.Replaceable() {
		return // nobody could take over: waiting is all there is
	}
	now := time.Now().UTC()
	c := fence.Case{
		ID: fmt.Sprintf("%s-%016x", layout.ID, now.UnixNano()), Phase: fence.Suspected,
		Leadership: leadership, Host: m.Host, Opened: now,
		Postgres: m.Listen(),
		Patroni:  fmt.Sprintf("%s:%d", m.Address, m.RESTPort),
	}
	t := &trial{judge: j, c: c, layout: layout, done: make(chan struct{})}
	j.open[layout.ID] = t
	go t.run(ctx)
}

// resume goes on with the cases that a judge before left open.
func (j *Judge) resume(ctx context.Context) {
	for _, c := range state.LoadAll[fence.Case](j.Cache, state.FenceRoot) {
		database := c.Value.Leadership.Database
		layout, err := state.Load[plan.Layout](j.Cache, state.Layout(database))
		t := &trial{judge: j, c: c.Value, layout: layout.Value, done: make(chan struct{})}
		if errors.Is(err, state.ErrNotFound) {
			t.end(ctx) // the database was deleted meanwhile
			continue
		}
		j.open[database] = t
		go t.run(ctx)
	}
}
