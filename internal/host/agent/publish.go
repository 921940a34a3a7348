package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// EtcdTimeout bounds a call of etcd that a failover may wait for.
const EtcdTimeout = 2 * time.Second

// publisher writes a member's reports beside the member, which must never wait
// for a slow etcd: it has to see a crash. Of reports that pile up only the
// newest is written.
type publisher struct {
	agent *Agent
	wake  chan struct{}

	mu   sync.Mutex
	next member.Report // guarded by mu; to be written
	last member.Report // guarded by mu; written
}

func newPublisher(a *Agent) *publisher { return &publisher{agent: a, wake: make(chan struct{}, 1)} }

// publish hands a report over.
func (p *publisher) publish(r member.Report) {
	p.mu.Lock()
	p.next = r
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// newest is the report that was handed over last.
func (p *publisher) newest() member.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// again has the newest report written once more.
func (p *publisher) again() {
	if r := p.newest(); r.ID != "" {
		p.publish(r)
	}
}

// published is the report that was written last.
func (p *publisher) published() member.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *publisher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		for !p.write(ctx) {
			if !pace.Sleep(ctx, 200*time.Millisecond) {
				return
			}
		}
	}
}

// write writes the newest report, and answers whether that worked.
func (p *publisher) write(ctx context.Context) bool {
	p.mu.Lock()
	r := p.next
	p.mu.Unlock()
	store := p.agent.Store
	if store == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, EtcdTimeout)
	defer cancel()
	if _, err := store.Commit(ctx, state.Put(state.Report(p.agent.Name, r.ID), r)); err != nil {
		p.agent.Log.Debug("report", "member", r.ID, "error", err)
		return false
	}
	p.mu.Lock()
	p.last = r
	p.mu.Unlock()
	return true
}

// Tell writes what somebody waits for: beside the member, which must not wait, until
// etcd has taken it or the member ends, and once at least. What is refused, as the result of
// a task that nobody waits for any more, is given up.
func (m *Member) Tell(ctx context.Context, op state.Op) {
	ctx = context.WithoutCancel(ctx) // what is told of may have used up its time
	m.done.Go(func() {
		for {
			call, cancel := context.WithTimeout(ctx, EtcdTimeout)
			_, err := m.agent.Store.Commit(call, op)
			cancel()
			if err == nil {
				return
			}
			m.Log.Warn("tell", "error", err)
			if errors.Is(err, rpctypes.ErrPermissionDenied) {
				return
			}
			select {
			case <-m.inbox.gone:
				return
			case <-time.After(writeAgain):
			}
		}
	})
}

// Amend changes the newest report, for a workload whose member waits for its disk and does not
// come to report; change answers whether it did. It may be called by any goroutine.
func (m *Member) Amend(change func(*member.Report) bool) { m.publisher.amend(change) }

func (p *publisher) amend(change func(*member.Report) bool) {
	p.mu.Lock()
	r := p.next
	p.mu.Unlock()
	if r.ID == "" || !change(&r) {
		return
	}
	r.At = time.Now().UTC()
	p.publish(r)
}
