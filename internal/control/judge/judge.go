package judge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

const (
	// look is how often the judge looks.
	look = 100 * time.Millisecond
	// warmUp is how long a new judge only listens. By then it has heard every host that lives.
	warmUp = 3 * time.Second
)

// Config is what a judge needs. All fields but Stonith are required.
type Config struct {
	Store *state.Store
	Cache *state.Cache // of state.Root and patroni.Namespace
	Pulse *Pulse
	// Detection is the silence after which a host counts as lost. Its default is DefaultDetection.
	Detection time.Duration
	// Stonith is the operator's command that kills a host for certain, or "".
	Stonith string
	// Leading is the condition under which this judge may write: its control plane still leads.
	Leading state.Op
	Log     *slog.Logger
}

// DefaultDetection is the default of Config.Detection.
const DefaultDetection = 2 * time.Second

// Judge is the judge of a home.
type Judge struct {
	Config
	open   map[string]*trial // by the case's key; belongs to Run's goroutine
	closed chan string       // keys of cases whose trial is over
}

// New makes a judge.
func New(cfg Config) *Judge {
	return &Judge{Config: cfg, open: map[string]*trial{}, closed: make(chan string)}
}

// Run judges until ctx ends. ctx must end when this control plane no longer leads.
func (j *Judge) Run(ctx context.Context) error {
	if err := j.Cache.Loaded(ctx); err != nil {
		return nil
	}
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
		case key := <-j.closed:
			delete(j.open, key)
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
	j.adopt(ctx)
	j.hearPleas(ctx)
	j.tidy(ctx)
	suspects := map[string]bool{}
	var news []state.Op
	for _, h := range state.ViewAll[member.Host](j.Cache, state.HostRoot) {
		silence := j.Pulse.Silence(h.Value.Name)
		if op, ok := j.pronounce(h.Value.Name, silence); ok {
			news = append(news, op)
		}
		if silence > j.suspicion() && j.Pulse.Listening() > warmUp {
			suspects[h.Value.Name] = true
		}
	}
	if err := j.record(ctx, news); err != nil && ctx.Err() == nil {
		j.Log.Warn("record judgements", "hosts", len(news), "error", err)
	}
	if len(suspects) > 0 {
		j.suspect(ctx, suspects)
	}
}

// suspicion is the silence after which witnesses are asked. It is short enough that they have
// answered when the host counts as lost.
func (j *Judge) suspicion() time.Duration { return j.Detection * 6 / 10 }

// pronounce returns the write that records a host as alive or lost. It returns false if nothing
// changed.
func (j *Judge) pronounce(host string, silence time.Duration) (state.Op, bool) {
	old, err := state.Load[member.Liveness](j.Cache, state.Live(host))
	alive := silence < j.Detection
	switch {
	case alive && !j.Pulse.Heard(host) || !alive && j.Pulse.Listening() < warmUp:
		return state.Op{}, false // not known yet
	case err == nil && old.Value.Alive == alive:
		return state.Op{}, false
	}
	j.Log.Info("host", "host", host, "alive", alive, "silent_for", silence.Round(time.Millisecond).String())
	return state.Put(state.Live(host), member.Liveness{Alive: alive, Since: time.Now().UTC()}), true
}

// record writes judgements. There may be many of them, as a lost zone has many hosts.
func (j *Judge) record(ctx context.Context, judgements []state.Op) error {
	last, err := j.Store.CommitEach(ctx, judgements, j.Leading)
	if err != nil || last == 0 {
		return err
	}
	return j.Cache.WaitRevision(ctx, last)
}

// commit writes on the condition that this control plane still leads.
func (j *Judge) commit(ctx context.Context, ops ...state.Op) (int64, error) {
	return j.Store.Commit(ctx, append(ops, j.Leading)...)
}

// suspect opens a trial for every primary on silent hosts.
func (j *Judge) suspect(ctx context.Context, hosts map[string]bool) {
	for _, l := range state.LoadAll[plan.Layout](j.Cache, state.LayoutRoot) {
		leader, _ := j.leader(l.Value.ID)
		for _, m := range l.Value.Members {
			if hosts[m.Host] && m.Name == leader && j.open[state.Fence(l.Value.ID, m.Name)] == nil {
				j.try(ctx, l.Value, m)
			}
		}
	}
}

// leader returns the name of the member that has the leader key, or "", and the key's revision.
func (j *Judge) leader(database string) (name string, revision int64) {
	value, revision, _ := j.Cache.Raw(patroni.LeaderKey(database))
	return patroni.MemberName(string(value)), revision
}

// try opens the trial of one primary.
func (j *Judge) try(ctx context.Context, layout plan.Layout, m plan.Placed) {
	leadership, err := fence.Read(ctx, j.Store.Client, layout.ID)
	if err != nil || leadership.Leader != m.Name || !leadership.Replaceable() {
		return // nobody could take over: waiting is all there is
	}
	j.begin(ctx, &trial{judge: j, layout: layout, done: make(chan struct{}), c: caseOf(layout, m, time.Now().UTC(), leadership)})
}

// caseOf returns a new case against a primary.
func caseOf(layout plan.Layout, m plan.Placed, now time.Time, l fence.Leadership) fence.Case {
	return fence.Case{
		ID: fmt.Sprintf("%s-%016x", layout.ID, now.UnixNano()), Phase: fence.Suspected,
		Leadership: l, Host: m.Host, Opened: now,
		Postgres: m.Listen(),
		Patroni:  fmt.Sprintf("%s:%d", m.Address, m.RESTPort),
	}
}

func (j *Judge) begin(ctx context.Context, t *trial) {
	j.open[t.key()] = t
	go t.run(ctx)
}

// adopt goes on with the cases that an earlier judge left open, and with those that could not be
// closed.
func (j *Judge) adopt(ctx context.Context) {
	for _, c := range state.LoadAll[fence.Case](j.Cache, state.FenceRoot) {
		if j.open[c.Key] != nil {
			continue
		}
		layout, err := state.Load[plan.Layout](j.Cache, state.Layout(c.Value.Leadership.Database))
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			continue // it is logged by who reads all of them
		}
		j.begin(ctx, &trial{judge: j, c: c.Value, revision: c.Revision, layout: layout.Value, done: make(chan struct{})})
	}
}
