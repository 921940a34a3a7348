package drivers

import (
	"context"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// sight follows who leads a cluster and who runs, by a watch.
type sight struct {
	scope   string
	cache   *state.Cache
	changed chan struct{} // has an element when something may have changed
	cancel  context.CancelFunc
	done    chan struct{}
}

// watch begins to follow, in a goroutine that ends with ctx, or by close.
func watch(ctx context.Context, client *clientv3.Client, log *slog.Logger, scope string) *sight {
	ctx, cancel := context.WithCancel(ctx)
	s := &sight{
		scope: scope, changed: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{}),
		cache: state.NewCache(client, log, patroni.LeaderKey(scope), patroni.MembersPrefix(scope)),
	}
	s.cache.OnChange(func([]string) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	})
	go func() {
		defer close(s.done)
		_ = s.cache.Run(ctx)
	}()
	return s
}

func (s *sight) close() {
	s.cancel()
	<-s.done
}

// now returns who has the leader key, and who runs, as it was at that time or later. The time is zero if
// nothing was read yet. It is a moment ago, unless etcd does not answer.
func (s *sight) now() (leader string, running []string, at time.Time) {
	at = s.cache.Heard() // before the rest, which is not older then
	if value, _, ok := s.cache.Raw(patroni.LeaderKey(s.scope)); ok {
		leader = patroni.MemberName(string(value))
	}
	prefix := patroni.MembersPrefix(s.scope)
	for _, key := range s.cache.Keys(prefix) {
		value, _, _ := s.cache.Raw(key)
		if m, err := patroni.ParseMember(value); err == nil && m.State == "running" {
			running = append(running, patroni.MemberName(state.Tail(key, prefix)))
		}
	}
	return leader, running, at
}
