package cut

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/state"
)

// reportsAtOnce keeps transactions below etcd's limit of 128 operations.
const reportsAtOnce = 100

// reports tells of cuts that were made, each once, and many at once: a host may be
// the standby of a hundred primaries that were lost together.
type reports struct {
	fences *Fences
	ready  chan struct{}

	mu       sync.Mutex
	waiting  map[string]Cut  // by key, guarded by mu
	reported map[string]bool // by key, guarded by mu
}

func newReports(f *Fences) *reports {
	return &reports{fences: f, ready: make(chan struct{}, 1), waiting: map[string]Cut{}, reported: map[string]bool{}}
}

// made notes cuts that hold. It does not wait.
func (r *reports) made(cuts ...Cut) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range cuts {
		if !r.reported[c.key()] {
			r.waiting[c.key()] = c
		}
	}
	if len(r.waiting) == 0 {
		return
	}
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// forget drops what is known of cases that are closed.
func (r *reports) forget(current map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.reported {
		if id, _, _ := strings.Cut(state.Tail(key, state.CutRoot), "/"); !current[id] {
			delete(r.reported, key)
		}
	}
	for key, c := range r.waiting {
		if !current[c.From.ID] {
			delete(r.waiting, key)
		}
	}
}

// run writes reports until ctx ends. What could not be written is made, and told, again
// at the next look.
func (r *reports) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.ready:
		}
		var all sync.WaitGroup
		for chunk := range slices.Chunk(r.take(), reportsAtOnce) {
			all.Go(func() { r.write(ctx, chunk) })
		}
		all.Wait()
	}
}

func (r *reports) take() []Cut {
	r.mu.Lock()
	defer r.mu.Unlock()
	var cuts []Cut
	for key, c := range r.waiting {
		cuts = append(cuts, c)
		delete(r.waiting, key)
	}
	return cuts
}

func (r *reports) write(ctx context.Context, cuts []Cut) {
	var ops []state.Op
	for _, c := range cuts {
		ops = append(ops, state.Put(c.key(), fence.CutReport{
			Case: c.From.ID, Host: r.fences.Agent.Name, Member: c.Standby.Name(), How: r.fences.Cutter.Name(),
			LSN: c.Standby.LSN(), At: time.Now().UTC(),
		}))
	}
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	if _, err := r.fences.Agent.Store.Commit(ctx, ops...); err != nil {
		r.fences.Agent.Log.Warn("report cuts", "count", len(cuts), "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range cuts {
		r.reported[c.key()] = true
	}
}
