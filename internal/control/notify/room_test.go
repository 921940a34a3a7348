package notify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"howdah/internal/model/topic"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

func emptyRoom() *room {
	r := newRoom()
	r.accounts, r.queues = map[string]*crowd{}, map[string]*queue{}
	return r
}

// fill makes a number of messages of a size wait for a subscription.
func (r *room) fill(t *testing.T, subscription string, number, size int) {
	t.Helper()
	for i := range number {
		if gone := r.enter(subscription, waiting{fmt.Sprintf("%s/%d", subscription, i), size}); len(gone) > 0 {
			t.Fatalf("%v had to go for number %d of %s", gone, i, subscription)
		}
	}
}

func TestRoomOfASubscriber(t *testing.T) {
	r := emptyRoom()
	r.fill(t, "1/r/t/a", maxQueue, 1024)
	r.fill(t, "1/r/t/b", 1, 1024)
	if gone := r.enter("1/r/t/a", waiting{"new", 1024}); !slices.Equal(gone, []string{"1/r/t/a/0"}) {
		t.Errorf("%v went", gone)
	}
	if gone := r.enter("1/r/t/b", waiting{"new", 1024}); gone != nil {
		t.Errorf("%v went for another", gone)
	}
	r = emptyRoom()
	r.fill(t, "1/r/t/a", 32, maxQueueBytes/32)
	if gone := r.enter("1/r/t/a", waiting{"new", maxQueueBytes / 16}); !slices.Equal(gone, []string{"1/r/t/a/0", "1/r/t/a/1"}) {
		t.Errorf("%v went", gone)
	}
	if r.givenUp["1/r/t/a"] != 2 {
		t.Errorf("given up %v", r.givenUp)
	}
	if gone := r.enter("1/r/t/empty", waiting{"new", 2 * maxQueueBytes}); gone != nil {
		t.Errorf("%v went for one that is alone", gone)
	}
}

// TestRoomOfAnAccount checks that the longest queue gives way, and only that of the same account.
func TestRoomOfAnAccount(t *testing.T) {
	for name, c := range map[string]struct{ queues, number, size int }{
		"by number": {maxAccountQueue / 500, 500, 1024},
		"by size":   {maxAccountBytes / (16 << 20), 16, 1 << 20},
	} {
		r := emptyRoom()
		r.fill(t, "2/r/t/other", 1000, 1024)
		for q := range c.queues {
			number := c.number
			switch q {
			case 0:
				number-- // room for one
			case 1:
				number-- // and for another, which the longest has
			case 2:
				number++
			}
			r.fill(t, fmt.Sprint("1/r/t/", q), number, c.size)
		}
		if gone := r.enter("1/r/t/new", waiting{"last", c.size}); gone != nil {
			t.Errorf("%s: %v went before it was full", name, gone)
		}
		if gone := r.enter("1/r/t/new", waiting{"more", c.size}); !slices.Equal(gone, []string{"1/r/t/2/0"}) {
			t.Errorf("%s: %v went", name, gone)
		}
		if n := r.accounts["1"].number; n != c.queues*c.number || r.accounts["1"].bytes != n*c.size || r.accounts["2"].number != 1000 {
			t.Errorf("%s: %d wait, with %d bytes", name, n, r.accounts["1"].bytes)
		}
	}
}

// TestGivenUpIsCounted checks the count for want of room and for age, until the subscription is
// gone.
func TestGivenUpIsCounted(t *testing.T) {
	w := newWorld(t)
	sub := w.subscribe("full", topic.HTTP, "http://127.0.0.1:1/", nil)
	tail, begun := subscriptionTail(sub), time.Now().UTC()
	for i := range maxQueue {
		d := Delivery{Subscription: tail, Begun: begun.Add(time.Duration(i)), Next: begun.Add(time.Hour)}
		w.put(state.Put(state.Delivery(tail, fmt.Sprintf("m%04d", i)), d))
	}
	n, _ := w.lead()
	counts := func(want int64) {
		t.Helper()
		testkit.Eventually(t, 10*time.Second, func() error {
			lost, err := state.Load[topic.GivenUp](w.cache, state.GivenUp(tail))
			if err == nil && (lost.Value.Messages != want || lost.Value.Last.IsZero()) {
				err = fmt.Errorf("%+v, want %d", lost.Value, want)
			}
			return err
		})
	}
	for i := range 60 { // more than one transaction of them
		w.publish(fmt.Sprint("new", i), "hello", nil)
	}
	counts(60)
	for _, key := range []string{"m0000", "m0059"} {
		if _, _, there := w.cache.Raw(state.Delivery(tail, key)); there {
			t.Errorf("%s still waits", key)
		}
	}
	if have := len(w.cache.Keys(state.DeliveryPrefix(tail))); have != maxQueue {
		t.Errorf("%d wait", have)
	}
	n.countGivenUp(t.Context(), tail, 1)
	counts(61)
	w.put(state.Delete(keyOf(sub)))
	testkit.Eventually(t, 10*time.Second, func() error {
		if keys := w.cache.Keys(state.GivenUpRoot); len(keys) > 0 {
			return errStill
		}
		return nil
	})
}

// TestExpiredIsCounted checks that a message which was tried for too long counts as given up, too.
func TestExpiredIsCounted(t *testing.T) {
	w := newWorld(t)
	w.cfg.Retry = Retry{First: 10 * time.Millisecond, Longest: 50 * time.Millisecond, Expire: 300 * time.Millisecond}
	sub := w.subscribe("never", topic.HTTP, "http://127.0.0.1:1/", nil)
	w.lead()
	w.publish("one", "hello", nil)
	testkit.Eventually(t, 10*time.Second, func() error {
		lost, err := state.Load[topic.GivenUp](w.cache, state.GivenUp(subscriptionTail(sub)))
		if err == nil && lost.Value.Messages != 1 {
			err = fmt.Errorf("%+v", lost.Value)
		}
		return err
	})
	w.idle()
}
