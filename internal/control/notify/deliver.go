package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// attemptTimeout bounds one attempt. SNS waits as long for an answer.
const attemptTimeout = 15 * time.Second

// dispatch begins the deliveries that are due, and returns how long to wait before the next look.
func (n *Notifier) dispatch(ctx context.Context, busy *sync.WaitGroup) time.Duration {
	now, next := time.Now(), tick
	waiting := state.LoadAll[Delivery](n.Cache, state.DeliveryRoot)
	slices.SortStableFunc(waiting, func(a, b state.Record[Delivery]) int {
		return cmp.Or(a.Value.Next.Compare(b.Value.Next), a.Value.Message.At.Compare(b.Value.Message.At))
	})
	for _, d := range waiting {
		if wait := d.Value.Next.Sub(now); wait > 0 {
			return min(next, wait)
		}
		if !n.takeOff(d) {
			continue
		}
		busy.Go(func() {
			defer n.poke()
			defer n.land(d.Key)
			n.deliver(ctx, d)
		})
	}
	return next
}

// deliver makes one attempt, and records how it ended before the delivery may be looked at again.
func (n *Notifier) deliver(ctx context.Context, d state.Record[Delivery]) {
	log := n.Log.With("subscription", d.Value.Subscription, "message", d.Value.Message.ID)
	sub, wanted := n.receiver(d.Value)
	var err error
	if wanted {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err = n.send(attempt, d.Value.Message, sub)
		cancel()
		if ctx.Err() != nil {
			return // who leads next begins anew
		}
	}
	op := state.Remove(d.Key, d.Revision)
	if err != nil {
		if d.Value, wanted = n.later(d.Value, err, time.Now()); wanted {
			op = state.Swap(d.Key, d.Revision, d.Value)
			log.Info("notification not delivered", "attempts", d.Value.Attempts, "next", d.Value.Next, "error", d.Value.Error)
		} else {
			log.Warn("notification given up", "attempts", d.Value.Attempts, "error", d.Value.Error)
			n.countGivenUp(ctx, d.Value.Subscription, 1)
		}
	}
	// There is no other attempt until the end of this one is recorded. etcd may refuse to write for
	// long, and the receiver would get the same message again and again.
	for {
		err := n.commit(ctx, op)
		if err == nil || errors.Is(err, state.ErrConflict) || ctx.Err() != nil {
			return
		}
		log.Warn("note a delivery", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(n.Retry.First):
		}
	}
}

// receiver returns the subscription as it is now, and whether it still wants the message.
func (n *Notifier) receiver(d Delivery) (topic.Subscription, bool) {
	r, err := state.Load[topic.Subscription](n.Cache, state.SubscriptionRoot+d.Subscription)
	if err != nil {
		return topic.Subscription{}, false
	}
	if d.Message.Only == nil {
		return r.Value, r.Value.Confirmed
	}
	return r.Value, !r.Value.Confirmed && r.Value.Token == d.Message.Only.Token
}

// later returns a delivery after an attempt that failed. It returns false if the delivery is given
// up.
func (n *Notifier) later(d Delivery, err error, now time.Time) (Delivery, bool) {
	wait := n.Retry.Longest
	if d.Attempts < 30 {
		wait = min(n.Retry.First<<d.Attempts, n.Retry.Longest)
	}
	// Deliveries that failed at the same moment must not all come back at the same moment.
	wait = wait*4/5 + time.Duration(rand.Int64N(int64(wait)*2/5+1))
	d.Attempts++
	d.Next, d.Error = now.Add(wait).UTC(), limited(err.Error(), 500)
	return d, d.Next.Sub(d.Begun) <= n.Retry.Expire
}

func limited(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// send takes a message to its receiver.
func (n *Notifier) send(ctx context.Context, m topic.Message, sub topic.Subscription) error {
	t, err := state.Load[topic.Topic](n.Cache, state.Topic(sub.Account, sub.Region, sub.Topic))
	if err != nil {
		return fmt.Errorf("read topic: %w", err)
	}
	e := topic.NewEnvelope(m, sub, n.Base)
	if err := n.signer.sign(ctx, &e, t.Value.Attributes["SignatureVersion"]); err != nil {
		return err
	}
	switch sub.Protocol {
	case topic.HTTP, topic.HTTPS:
		return n.web.post(ctx, e, sub)
	default:
		return mailTo(ctx, n.SMTP, e, sub, t.Value.Attributes["DisplayName"])
	}
}

func splitARN(arn string) []string { return strings.Split(arn, ":") }
