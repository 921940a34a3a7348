package notify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"howdah/internal/model/topic"
	"howdah/internal/state"
)

const (
	// maxQueue and maxQueueBytes bound what waits for one subscriber. maxAccountQueue and
	// maxAccountBytes bound what waits for all subscribers of an account. Beyond them the oldest
	// messages are given up, those of the longest queue first.
	maxQueue        = 1000
	maxQueueBytes   = 32 << 20
	maxAccountQueue = 10_000
	maxAccountBytes = 128 << 20
	// recount is how old a count may be. Deliveries that end are not subtracted from it.
	recount = time.Second
)

// room counts what waits for delivery, while deliveries are queued.
type room struct {
	counted  time.Time
	accounts map[string]*crowd
	queues   map[string]*queue // by subscription
	givenUp  map[string]int64  // by subscription; what was not told yet
}

// crowd counts what waits of an account.
type crowd struct {
	number, bytes int
	queues        []*queue
}

// queue is what waits for a subscription, the oldest first.
type queue struct {
	subscription string
	crowd        *crowd
	bytes        int
	waiting      []waiting
}

type waiting struct {
	key   string
	bytes int
}

func newRoom() *room { return &room{givenUp: map[string]int64{}} }

// count counts anew what waits now.
func (r *room) count(cache *state.Cache, now time.Time) {
	r.counted, r.accounts, r.queues = now, map[string]*crowd{}, map[string]*queue{}
	all := state.LoadAll[Delivery](cache, state.DeliveryRoot)
	slices.SortStableFunc(all, func(a, b state.Record[Delivery]) int { return a.Value.Begun.Compare(b.Value.Begun) })
	for _, d := range all {
		r.queue(d.Value.Subscription).join(waiting{d.Key, d.Value.Message.Size()})
	}
}

func (r *room) queue(subscription string) *queue {
	if q := r.queues[subscription]; q != nil {
		return q
	}
	account := accountOf(subscription)
	if r.accounts[account] == nil {
		r.accounts[account] = &crowd{}
	}
	q := &queue{subscription: subscription, crowd: r.accounts[account]}
	q.crowd.queues = append(q.crowd.queues, q)
	r.queues[subscription] = q
	return q
}

func (q *queue) join(w waiting) {
	q.waiting = append(q.waiting, w)
	q.bytes, q.crowd.bytes, q.crowd.number = q.bytes+w.bytes, q.crowd.bytes+w.bytes, q.crowd.number+1
}

func (q *queue) leave() waiting {
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.bytes, q.crowd.bytes, q.crowd.number = q.bytes-w.bytes, q.crowd.bytes-w.bytes, q.crowd.number-1
	return w
}

// enter counts a delivery that is queued. It returns the keys of deliveries that have to go for it.
func (r *room) enter(subscription string, w waiting) (gone []string) {
	q := r.queue(subscription)
	giveUp := func(from *queue) {
		gone = append(gone, from.leave().key)
		r.givenUp[from.subscription]++
	}
	for len(q.waiting) > 0 && (len(q.waiting) >= maxQueue || q.bytes+w.bytes > maxQueueBytes) {
		giveUp(q)
	}
	for q.crowd.number > 0 && (q.crowd.number >= maxAccountQueue || q.crowd.bytes+w.bytes > maxAccountBytes) {
		giveUp(slices.MaxFunc(q.crowd.queues, func(a, b *queue) int {
			return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(len(a.waiting), len(b.waiting)))
		}))
	}
	q.join(w)
	return gone
}

// tell records and logs what was given up for want of room.
func (n *Notifier) tell(ctx context.Context, r *room) {
	for subscription, number := range r.givenUp {
		n.Log.Warn("notifications given up: too many wait", "subscription", subscription, "number", number)
		n.countGivenUp(ctx, subscription, number)
	}
	r.givenUp = map[string]int64{}
}

// countGivenUp adds to the number of given up messages that users see.
func (n *Notifier) countGivenUp(ctx context.Context, subscription string, number int64) {
	n.counting.Lock()
	defer n.counting.Unlock()
	key := state.GivenUp(subscription)
	known, err := state.Load[topic.GivenUp](n.Cache, key)
	if err == nil || errors.Is(err, state.ErrNotFound) {
		err = n.commit(ctx, state.Put(key, topic.GivenUp{Messages: known.Value.Messages + number, Last: time.Now().UTC()}))
	}
	if err != nil && ctx.Err() == nil {
		n.Log.Warn("count what was given up", "subscription", subscription, "number", number, "error", err)
	}
}

// forgetCounts removes the counts of subscriptions that no longer exist.
func (n *Notifier) forgetCounts(ctx context.Context) error {
	for _, key := range n.Cache.Keys(state.GivenUpRoot) {
		_, err := state.Load[topic.Subscription](n.Cache, state.SubscriptionRoot+state.Tail(key, state.GivenUpRoot))
		if !errors.Is(err, state.ErrNotFound) {
			continue
		}
		if err := n.commit(ctx, state.Delete(key)); err != nil {
			return err
		}
	}
	return nil
}
