package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// batch gathers writes, and makes them once they are many or large.
type batch struct {
	n    *Notifier
	room *room
	todo state.Batch
}

// add adds a write.
func (b *batch) add(ctx context.Context, op state.Op) error {
	if !b.todo.Fits(op) {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.todo.Add(op)
	return nil
}

func (b *batch) flush(ctx context.Context, last ...state.Op) error {
	ops := append(b.todo.Take(), last...)
	if len(ops) == 0 {
		return nil
	}
	return b.n.commit(ctx, ops...)
}

// fanOut turns what is new into deliveries.
func (n *Notifier) fanOut(ctx context.Context) error {
	n.mu.Lock()
	news := n.news
	n.news = false
	n.mu.Unlock()
	if !news {
		return nil
	}
	r := newRoom()
	err := errors.Join(n.events(ctx, r), n.messages(ctx, r))
	n.tell(ctx, r)
	if err != nil {
		n.mu.Lock()
		n.news = true
		n.mu.Unlock()
	}
	return err
}

// events queues what event subscriptions publish of the events after the cursor, in the order in
// which these were written. The cursor moves together with the last of an event's deliveries, or
// after it.
func (n *Notifier) events(ctx context.Context, r *room) error {
	at, err := state.Load[Cursor](n.Cache, state.NotifyCursor())
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	subscriptions := state.LoadAll[topic.EventSubscription](n.Cache, state.EventSubRoot)
	// Without subscriptions the cursor need not move, because later subscriptions want no earlier
	// events.
	if len(subscriptions) == 0 {
		return nil
	}
	news := state.ViewNewer[event.Event](n.Cache, state.EventRoot, at.Value.Revision)
	if len(news) == 0 {
		return nil
	}
	slices.SortFunc(news, func(a, b state.Record[*event.Event]) int { return cmp.Compare(a.Revision, b.Revision) })
	todo := &batch{n: n, room: r}
	for _, e := range news {
		if err := n.event(ctx, todo, subscriptions, state.Copy(e)); err != nil {
			return err
		}
	}
	last := Cursor{Revision: news[len(news)-1].Revision}
	return todo.flush(ctx, state.Swap(state.NotifyCursor(), at.Revision, last))
}

// event queues what is published of one event.
func (n *Notifier) event(ctx context.Context, todo *batch, subscriptions []state.Record[topic.EventSubscription], r state.Record[event.Event]) error {
	scope, ok := scopeOf(r.Value.ARN)
	if !ok {
		return nil
	}
	for _, s := range subscriptions {
		if !s.Value.Wants(scope, r.Value) {
			continue
		}
		m, err := topic.EventMessage(s.Value, r.Key, r.Value, n.Base, n.tagsOf(scope, r.Value))
		if err != nil {
			n.Log.Warn("publish event", "event", r.Key, "error", err)
			continue
		}
		if err := n.queue(ctx, todo, m); err != nil {
			return err
		}
	}
	return nil
}

// scopeOf returns the account and region of the source of an event.
func scopeOf(arn string) (spec.Scope, bool) {
	parts := splitARN(arn)
	if len(parts) < 6 {
		return spec.Scope{}, false
	}
	return spec.Scope{Region: parts[3], Account: parts[4]}, true
}

// tagsOf returns the tags that the source of an event has now. It returns none if the source is
// gone.
func (n *Notifier) tagsOf(scope spec.Scope, e event.Event) []spec.Tag {
	instance, err := state.Load[spec.Instance](n.Cache, state.Instance(scope.Account, scope.Region, e.Source))
	if e.SourceType == event.Instance && err == nil {
		return instance.Value.Tags
	}
	cluster, err := state.Load[spec.Cluster](n.Cache, state.Cluster(scope.Account, scope.Region, e.Source))
	if e.SourceType == event.Cluster && err == nil {
		return cluster.Value.Tags
	}
	return nil
}

// messages queues what was published, and removes each message together with that.
func (n *Notifier) messages(ctx context.Context, r *room) error {
	var failed []error
	for _, m := range state.LoadAll[topic.Message](n.Cache, state.MessageRoot) {
		todo := &batch{n: n, room: r}
		err := n.queue(ctx, todo, m.Value)
		if err == nil {
			err = todo.flush(ctx, state.Remove(m.Key, m.Revision))
		}
		if err != nil { // one that cannot be queued must not hold the others up
			failed = append(failed, fmt.Errorf("queue message %s: %w", m.Value.ID, err))
		}
	}
	return errors.Join(failed...)
}

// queue makes the deliveries of one message.
func (n *Notifier) queue(ctx context.Context, todo *batch, m topic.Message) error {
	if now := time.Now(); now.Sub(todo.room.counted) > recount {
		todo.room.count(n.Cache, now)
	}
	if m.Only != nil {
		return n.enqueue(ctx, todo, m, subscriptionTail(*m.Only))
	}
	// If the topic is gone, its subscribers are gone, too.
	for _, s := range state.LoadAll[topic.Subscription](n.Cache, state.SubscriptionPrefix(m.Account, m.Region, m.Topic)) {
		if !s.Value.Wants(m) {
			continue
		}
		if err := n.enqueue(ctx, todo, m, subscriptionTail(s.Value)); err != nil {
			return err
		}
	}
	return nil
}

func (n *Notifier) enqueue(ctx context.Context, todo *batch, m topic.Message, subscription string) error {
	now, key := time.Now().UTC(), state.Delivery(subscription, m.ID)
	for _, gone := range todo.room.enter(subscription, waiting{key, m.Size()}) {
		if err := todo.add(ctx, state.Delete(gone)); err != nil {
			return err
		}
	}
	return todo.add(ctx, state.Put(key, Delivery{Message: m, Subscription: subscription, Begun: now, Next: now}))
}

// subscriptionTail returns the part of a subscription's key that names it.
func subscriptionTail(s topic.Subscription) string {
	return state.Tail(state.Subscription(s.Account, s.Region, s.Topic, s.ID), state.SubscriptionRoot)
}
