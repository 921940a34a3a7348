// Package cut has the standbys of a host cut themselves off from a primary that is lost, so that no
// confirmation of theirs reaches it any more. It carries out the cases (package fence) that the
// judge opens, tells of each cut after it holds, never before, and lets nothing be started that
// could undo one.
package cut

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/pace"
	"howdah/internal/state"
)

// Fences follows the cases of primaries that may be lost: as a witness, by
// cutting the own standbys off, and by giving in when the own primary was
// replaced. The exported fields are required, and set before Run.
type Fences struct {
	Agent  *agent.Agent
	Cutter Cutter
	// Standbys are all members of the host.
	Standbys func() []*Standby
	// GiveIn ends the own primary, which was replaced while this host was silent. It does
	// not wait for that. Its context is Run's, which outlives the case: GiveIn may be the first
	// to hear of the member, and then starts what looks after it.
	GiveIn func(context.Context, fence.Case)

	// admission says what may be started; nil: it was not asked yet which primaries are lost.
	admission atomic.Pointer[admission]

	// Used by Run only.
	seen    map[string]*watching // by the case's id
	reports *reports
}

// watching is one case as this host deals with it.
type watching struct {
	phase  fence.Phase
	cancel context.CancelFunc
}

// Cut is one of the own standbys that has to be cut off from a lost primary.
type Cut struct {
	From    fence.Case
	Standby *Standby
}

// key is that of the report.
func (c Cut) key() string { return state.Cut(c.From.ID, c.Standby.Name()) }

// Run follows the cases until ctx ends.
func (f *Fences) Run(ctx context.Context) error {
	f.seen, f.reports = map[string]*watching{}, newReports(f)
	cache := state.NewCache(f.Agent.Store.Client, f.Agent.Log, state.FenceRoot)
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // cuts that an earlier agent left are mended at once
	cache.OnChange(func([]string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	var follow sync.WaitGroup
	follow.Go(func() { _ = cache.Run(ctx) })
	follow.Go(func() { f.reports.run(ctx) })
	defer follow.Wait()
	for cache.Loaded(ctx) != nil { // members wait for it
		if !pace.Sleep(ctx, time.Second) {
			return nil
		}
	}
	for {
		select {
		case <-ctx.Done():
			f.stop()
			return nil
		case <-changed:
		case <-time.After(time.Second):
		}
		f.update(ctx, state.LoadAll[fence.Case](cache, state.FenceRoot))
	}
}

func (f *Fences) stop() {
	for _, w := range f.seen {
		w.cancel()
	}
}

// update makes this host do what the open cases ask for.
func (f *Fences) update(ctx context.Context, open []state.Record[fence.Case]) {
	var wanted []Cut
	found := &admission{tried: map[*Standby]bool{}}
	current := map[string]bool{}
	for _, record := range open {
		c := record.Value
		current[c.ID] = true
		if !c.Wanted() {
			continue
		}
		found.lost = append(found.lost, c)
		for _, s := range f.ownStandbys(c) {
			wanted = append(wanted, Cut{From: c, Standby: s})
			found.tried[s] = true
		}
	}
	// Cut first: everything else waits for it.
	found.err = f.Cutter.Sync(ctx, wanted, f.reports.made)
	if found.err != nil {
		f.Agent.Log.Error("cut off a lost primary", "error", found.err)
	}
	f.admission.Store(found)
	for _, record := range open {
		f.follow(ctx, record.Value)
	}
	f.forget(current)
}

// forget drops what is known of cases that are closed.
func (f *Fences) forget(current map[string]bool) {
	for id, w := range f.seen {
		if !current[id] {
			w.cancel()
			delete(f.seen, id)
		}
	}
	f.reports.forget(current)
}

// ownStandbys are this host's members that could confirm commits to the primary.
func (f *Fences) ownStandbys(c fence.Case) []*Standby {
	var own []*Standby
	for _, s := range f.Standbys() {
		if s.confirms(c.Leadership) {
			own = append(own, s)
		}
	}
	return own
}

// follow reacts to a case that is new or has moved on.
func (f *Fences) follow(ctx context.Context, c fence.Case) {
	old := f.seen[c.ID]
	if old != nil && old.phase == c.Phase {
		return
	}
	if old != nil {
		old.cancel()
	}
	phase, cancel := context.WithCancel(ctx)
	f.seen[c.ID] = &watching{phase: c.Phase, cancel: cancel}
	switch own := f.ownStandbys(c); {
	case c.Host == f.Agent.Name:
		if c.Wanted() {
			f.GiveIn(ctx, c)
		}
	case c.Phase == fence.Suspected && len(own) > 0:
		own[0].Go(func() { f.witness(phase, c) })
	}
}
