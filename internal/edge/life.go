package edge

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"howdah/internal/state"
	"howdah/internal/state/etcd"
)

const (
	// lifeTTL is after how many seconds an edge that died no longer counts as running.
	lifeTTL = 5
	// endWithin is how long an edge that ends may take to say so.
	endWithin = 2 * time.Second
	// sayAgain is the pause before the edge repeats what it could not tell.
	sayAgain = 500 * time.Millisecond
)

// tellLife keeps the key that says that this edge runs, until ctx ends. An edge that ends in an
// orderly way deletes its status, and so is forgotten; one that dies is missed. The key stays for
// the rest of its lease: an edge that is only restarted leads clients all the time, and its
// databases stay available. tellLife waits until the state says where this process leads clients:
// what the state said before may be from before the machine was started.
func (e *Edge) tellLife(ctx context.Context) {
	defer e.takeLeave(context.WithoutCancel(ctx))
	select {
	case <-ctx.Done():
		return
	case <-e.led:
	}
	for ctx.Err() == nil {
		if err := e.liveOnce(ctx); err != nil && ctx.Err() == nil {
			e.Log.Warn("tell that the edge runs", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// liveOnce keeps one lease for as long as etcd knows it. It writes the key again when a control
// plane has started. To that one the old key says little, because etcd renews all leases when it
// starts.
func (e *Edge) liveOnce(ctx context.Context) error {
	session, end, err := etcd.Session(ctx, e.Store.Client, lifeTTL, endWithin)
	if err != nil {
		return err
	}
	if err := e.sayLife(session); err != nil {
		end()
		return err
	}
	for {
		select {
		case <-session.Done():
			end()
			return nil
		case <-ctx.Done():
			session.Orphan()
			return nil
		case <-e.ask:
			if err := e.sayLife(session); err != nil {
				e.Log.Info("tell a control plane that the edge runs", "error", err)
				time.AfterFunc(sayAgain, func() { nudge(e.ask) })
			}
		}
	}
}

func (e *Edge) sayLife(session *concurrency.Session) error {
	ctx, cancel := context.WithTimeout(session.Ctx(), endWithin)
	defer cancel()
	_, err := e.Store.Commit(ctx, state.Put(state.Runs(e.Name), true, clientv3.WithLease(session.Lease())))
	return err
}

func (e *Edge) takeLeave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	if _, err := e.Store.Commit(ctx, state.Delete(state.Edge(e.Name))); err != nil {
		e.Log.Info("take leave", "error", err)
	}
}
