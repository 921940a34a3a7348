package operation

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

const (
	// tick is how often the runner looks for operations that nobody drives, in case a change
	// was missed, and sweepEvery how often it removes old ones.
	tick       = time.Second
	sweepEvery = time.Minute
	// handOver is how long one that does not lead any more waits for calls that do not heed
	// their context. What they still write is refused.
	handOver = 2 * time.Second
)

// Config is what a runner needs. All its fields are required; the definitions may be none.
type Config struct {
	Store *state.Store
	Cache *state.Cache // of state.Root
	// Name is the control plane's, for the records.
	Name        string
	Definitions []*Definition
	Log         *slog.Logger
}

// Runner carries operations out. Make it with New.
type Runner struct {
	Config
	wake chan struct{}

	mu      sync.Mutex
	drivers map[string]*driver // by id; guarded by mu
}

// New makes a runner. Call it before the cache runs.
func New(cfg Config) *Runner {
	r := &Runner{Config: cfg, wake: make(chan struct{}, 1), drivers: map[string]*driver{}}
	cfg.Cache.OnChange(r.changed)
	return r
}

// changed tells drivers of wishes and of jobs that have ended, and the loop of operations that have
// no driver yet.
func (r *Runner) changed(keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		if id, ok := strings.CutPrefix(key, state.OperationCancelRoot); ok {
			if d := r.drivers[id]; d != nil {
				d.poke()
			}
		} else if strings.HasPrefix(key, state.JobReportRoot) {
			if d := r.drivers[operationOf(key)]; d != nil && r.over(key) {
				d.hear()
			}
		} else if id, ok := strings.CutPrefix(key, state.OperationRoot); ok && r.drivers[id] == nil {
			select {
			case r.wake <- struct{}{}:
			default:
			}
		}
	}
}

// over reports whether a host has reported that a job ended.
func (r *Runner) over(key string) bool {
	report, err := state.View[member.JobReport](r.Cache, key)
	return err == nil && report.Value.State != member.JobRuns
}

// Run carries operations out until ctx ends, that is, as long as this control plane leads.
// leading is the condition of a commit that only the one that leads may make.
func (r *Runner) Run(ctx context.Context, leading state.Op) error {
	if err := r.Cache.Loaded(ctx); err != nil {
		return nil // it was told to end
	}
	term := &term{Runner: r, leading: leading, owner: r.Name + "-" + rand.Text()[:8]}
	defer term.end()
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for swept := (time.Time{}); ; {
		term.look(ctx)
		if now := time.Now(); now.Sub(swept) >= sweepEvery {
			swept = now
			if err := term.sweep(ctx, now); err != nil && ctx.Err() == nil {
				r.Log.Warn("remove old operations", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-r.wake:
		}
	}
}

// term is one time of leading.
type term struct {
	*Runner
	leading state.Op
	owner   string
	busy    sync.WaitGroup
}

// end waits for the drivers, and forgets those that do not end.
func (t *term) end() {
	idle := make(chan struct{})
	go func() { t.busy.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-time.After(handOver):
		t.Log.Warn("steps of operations do not end")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.drivers)
}

// look has every operation that has not ended driven.
func (t *term) look(ctx context.Context) {
	for _, r := range state.ViewAll[operation.Record](t.Cache, state.OperationRoot) {
		if !r.Value.State.Ended() {
			t.drive(ctx, state.Tail(r.Key, state.OperationRoot), r.Value.Kind)
		}
	}
}

func (t *term) drive(ctx context.Context, id, kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drivers[id] != nil {
		return
	}
	d := &driver{
		id: id, owner: t.owner, def: t.definition(kind), wake: make(chan struct{}, 1), log: t.Log,
		books: books{store: t.Store, cache: t.Cache, leading: t.leading},
	}
	if d.def == nil {
		t.Log.Warn("operation of a kind that this version does not know", "id", id, "kind", kind)
	}
	t.drivers[id] = d
	t.busy.Go(func() {
		d.run(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.drivers[id] == d {
			delete(t.drivers, id)
		}
	})
}

func (r *Runner) definition(kind string) *Definition {
	for _, d := range r.Definitions {
		if d.Name == kind {
			return d
		}
	}
	return nil
}

// sweep removes what need not be kept: old operations, wishes that came too late, and jobs that
// nobody waits for.
func (t *term) sweep(ctx context.Context, now time.Time) error {
	records := state.ViewAll[operation.Record](t.Cache, state.OperationRoot)
	all, active := make([]*operation.Record, len(records)), map[string]bool{}
	for n, r := range records {
		all[n] = r.Value
		active[r.Value.ID] = !r.Value.State.Ended()
	}
	var ops []state.Op
	for _, id := range operation.Expired(all, now) {
		ops = append(ops, state.Delete(state.Operation(id)))
	}
	for _, id := range t.Cache.Names(state.OperationCancelRoot) {
		if !active[id] {
			ops = append(ops, state.Delete(state.OperationCancel(id)))
		}
	}
	ops = append(ops, t.orphans(active)...)
	_, err := t.Store.CommitEach(ctx, ops, t.leading)
	if errors.Is(err, state.ErrConflict) {
		return ErrOvertaken
	}
	return err
}

// orphans returns the removal of jobs whose operation has ended, and of reports of hosts that were
// forgotten. Other reports are removed by their hosts.
func (t *term) orphans(active map[string]bool) (ops []state.Op) {
	for _, key := range t.Cache.Keys(state.JobRoot) {
		if !active[operationOf(key)] {
			ops = append(ops, state.Delete(key))
		}
	}
	for _, key := range t.Cache.Keys(state.JobReportRoot) {
		name := state.Tail(key, state.JobReportRoot)
		host, _, _ := strings.Cut(name, "/")
		_, _, asked := t.Cache.Raw(state.JobRoot + name)
		if _, _, known := t.Cache.Raw(state.Host(host)); !known && !asked {
			ops = append(ops, state.Delete(key))
		}
	}
	return ops
}
