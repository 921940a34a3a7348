package notify

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// TestSlots checks how many deliveries may begin beside those that are being made.
func TestSlots(t *testing.T) {
	s := newSlots()
	begin := func(account, endpoint string, most int) int {
		begun := 0
		for i := range most {
			f := flight{fmt.Sprintf("%s/r/%s/%d", account, endpoint, i), account, endpoint}
			if s.free(f) {
				s.take(f.subscription, f)
				begun++
			}
		}
		return begun
	}
	if n := begin("1", "a", 100); n != maxPerEndpoint {
		t.Errorf("%d to one host", n)
	}
	for e := range 10 {
		begin("1", fmt.Sprint(e), 100)
	}
	if n := s.accounts["1"]; n != maxPerAccount {
		t.Errorf("%d of one account", n)
	}
	for account := range 10 {
		for e := range 10 {
			begin(fmt.Sprint("other", account), fmt.Sprint(e), 100)
		}
	}
	if n := len(s.flying); n < maxFlying || n > maxFlying+10*reserved {
		t.Errorf("%d fly: %v", n, s.accounts)
	}
	for account := range 10 {
		if n := s.accounts[fmt.Sprint("other", account)]; n < reserved {
			t.Errorf("account %d has %d", account, n)
		}
	}
	late := 0
	for e := range 10 {
		late += begin("late", fmt.Sprint(e), 100)
	}
	if n := late; n != reserved {
		t.Errorf("%d of an account that comes when all is taken", n)
	}
	if s.free(flight{"1/r/a/0", "1", "b"}) {
		t.Error("two to one subscriber")
	}
	for key := range s.flying {
		s.leave(key)
		s.leave(key)
	}
	if len(s.flying)+len(s.receivers)+len(s.accounts)+len(s.perAccount) != 0 {
		t.Errorf("left: %+v", s)
	}
	if n := begin("1", "a", 100); n != maxPerEndpoint {
		t.Errorf("%d after all landed", n)
	}
}

func TestEndpointOf(t *testing.T) {
	for _, test := range []struct{ protocol, endpoint, want string }{
		{topic.HTTPS, "https://Hook.example:8443/a?b", "hook.example:8443"},
		{topic.HTTP, "http://user:pw@hook.example/c", "hook.example"},
		{topic.HTTP, "http://[::1]:80/", "[::1]:80"},
		{topic.Email, "a@example.org", mailEndpoint},
		{topic.EmailJSON, "b@example.net", mailEndpoint},
		{topic.HTTP, "http://%zz", "http://%zz"},
	} {
		if got := endpointOf(topic.Subscription{Protocol: test.protocol, Endpoint: test.endpoint}); got != test.want {
			t.Errorf("%s: %q, want %q", test.endpoint, got, test.want)
		}
	}
}

// TestSlowAccountsHoldNobodyUp checks that subscribers which never answer take only their own
// accounts' places, and only some of them on one host.
func TestSlowAccountsHoldNobodyUp(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	hang := func(int, http.ResponseWriter) bool { <-release; return false }
	works := w.receiver(nil)
	slow := []*receiver{}
	for range 6 {
		slow = append(slow, w.receiver(hang))
	}
	t.Cleanup(func() { close(release) })
	// There are enough accounts to take all places.
	for a := range maxFlying/maxPerAccount + 2 {
		account := fmt.Sprintf("2%011d", a)
		for i := range 4 * maxPerAccount {
			w.waits(account, fmt.Sprint("s", i), slow[i%len(slow)].URL, time.Minute)
		}
	}
	// The account that works asks last. Some subscribers on a host of the same account never
	// answer.
	for i := range 20 {
		w.waits(scope.Account, fmt.Sprint("hangs", i), slow[0].URL, time.Minute)
	}
	for i := range 10 {
		w.waits(scope.Account, fmt.Sprint("works", i), works.URL, 0)
	}
	n, stop := w.lead()
	t.Cleanup(stop)
	works.gets(t, 10)
	n.mu.Lock()
	for account, flying := range n.slots.accounts {
		if flying > maxPerAccount {
			t.Errorf("%d deliveries of %s", flying, account)
		}
	}
	if flying := n.slots.perAccount[[2]string{scope.Account, slow[0].Listener.Addr().String()}]; flying > maxPerEndpoint {
		t.Errorf("%d deliveries to one host", flying)
	}
	n.mu.Unlock()
	stop()
}

// waits makes a confirmed subscription of an account, with a message that has been due for some
// time.
func (w *world) waits(account, id, endpoint string, since time.Duration) {
	w.Helper()
	of, due := spec.Scope{Account: account, Region: scope.Region}, time.Now().Add(-since).UTC()
	sub := topic.Subscription{Scope: of, ID: id, Topic: "alarms", Protocol: topic.HTTP, Endpoint: endpoint, Confirmed: true}
	m := topic.Message{Kind: topic.Notification, ID: "m", Scope: of, Topic: "alarms", Body: []byte("hello"), At: due}
	w.put(
		state.Put(state.Topic(account, of.Region, "alarms"), topic.Topic{Scope: of, Name: "alarms"}), state.Put(keyOf(sub), sub),
		state.Put(state.Delivery(subscriptionTail(sub), "m"), Delivery{Message: m, Subscription: subscriptionTail(sub), Begun: due, Next: due}),
	)
}
