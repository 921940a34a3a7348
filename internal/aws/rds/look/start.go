package look

import (
	"context"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/state"
)

// Hearing knows who was heard since this control plane started: judge.Pulse does.
type Hearing interface {
	// Heard reports whether a host was heard at all.
	Heard(host string) bool
	// Vouches reports whether what an agent of a host wrote is that of the agent which the
	// host has now.
	Vouches(host, agent string) bool
}

const (
	// edgeKeyLasts is how long the key of an edge that died may be in the state after
	// etcd has started: for a whole lease, whatever was left of it before, and the time
	// that etcd adds for an election and takes to notice.
	edgeKeyLasts = 8 * time.Second
	// settleWithin is how long a control plane that has started may hold answers back for
	// hosts and edges that are not heard.
	settleWithin = 3 * time.Second
	settleEvery  = 20 * time.Millisecond
)

// Doubtful is the revision up to which the keys of edges that run may be of edges that
// died since.
func (s *Source) Doubtful() int64 {
	if time.Since(s.Started) > edgeKeyLasts {
		return 0
	}
	return s.Began
}

// Settle holds an answer back until hosts and edges are heard that were there: else a
// control plane that is started again alone would tell of databases that they do not
// serve.
func (s *Source) Settle(ctx context.Context) error {
	for !s.settled.Load() {
		if time.Since(s.Started) > settleWithin || s.everyoneHeard() {
			s.settled.Store(true)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settleEvery):
		}
	}
	return nil
}

func (s *Source) everyoneHeard() bool {
	for _, key := range s.Cache.Keys(state.RunsRoot) {
		if _, revision, found := s.Cache.Raw(key); found && revision <= s.Began {
			return false
		}
	}
	for _, live := range state.ViewAll[member.Liveness](s.Cache, state.LiveRoot) {
		if live.Value.Alive && s.Hearing != nil && !s.Hearing.Heard(state.Tail(live.Key, state.LiveRoot)) {
			return false
		}
	}
	return true
}
