package notify

import (
	"net/url"
	"strings"

	"howdah/internal/model/topic"
	"howdah/internal/state"
)

const (
	// maxFlying bounds how many deliveries are made at a time. maxPerAccount bounds those of one
	// account, and maxPerEndpoint those of one account to one host, however many subscribers it has
	// there, because a host that does not answer holds a place for long. An account that has fewer
	// than reserved may always begin one, so that the others together cannot keep it from
	// delivering. There are few accounts, because operators make them.
	maxFlying      = 64
	maxPerAccount  = 16
	maxPerEndpoint = 4
	reserved       = 2 * maxPerEndpoint
	// maxPerReceiver bounds those to one subscriber. So a subscriber that works gets messages in
	// the order in which they were published.
	maxPerReceiver = 1
	// mailEndpoint stands for the relay, because all mail goes there.
	mailEndpoint = "mail"
)

// flight is a delivery that is being made.
type flight struct{ subscription, account, endpoint string }

// slots counts what is being made.
type slots struct {
	flying     map[string]flight // by key of the delivery
	receivers  map[string]int    // by subscription
	accounts   map[string]int
	perAccount map[[2]string]int // by account and endpoint
}

func newSlots() slots {
	return slots{flying: map[string]flight{}, receivers: map[string]int{}, accounts: map[string]int{}, perAccount: map[[2]string]int{}}
}

// free reports whether a delivery may begin.
func (s *slots) free(f flight) bool {
	own := s.accounts[f.account]
	return s.receivers[f.subscription] < maxPerReceiver && own < maxPerAccount &&
		s.perAccount[[2]string{f.account, f.endpoint}] < maxPerEndpoint && (len(s.flying) < maxFlying || own < reserved)
}

// take records that a delivery begins.
func (s *slots) take(key string, f flight) {
	s.flying[key] = f
	s.count(f, 1)
}

// leave records that a delivery ended.
func (s *slots) leave(key string) {
	if f, ok := s.flying[key]; ok {
		delete(s.flying, key)
		s.count(f, -1)
	}
}

func (s *slots) count(f flight, n int) {
	change(s.receivers, f.subscription, n)
	change(s.accounts, f.account, n)
	change(s.perAccount, [2]string{f.account, f.endpoint}, n)
}

func change[K comparable](counts map[K]int, key K, n int) {
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}

// takeOff records that a delivery is being made. It returns false if it already is, or if too many
// are.
func (n *Notifier) takeOff(d state.Record[Delivery]) bool {
	f := flight{subscription: d.Value.Subscription, account: accountOf(d.Value.Subscription)}
	n.mu.Lock()
	defer n.mu.Unlock()
	// If many wait, most are refused here, before anything else is looked at.
	if _, flies := n.slots.flying[d.Key]; flies || !n.slots.free(f) {
		return false
	}
	// It may have ended since the queue was read. Then its end is in the mirror.
	if _, revision, there := n.Cache.Raw(d.Key); !there || revision != d.Revision {
		return false
	}
	if sub, err := state.Load[topic.Subscription](n.Cache, state.SubscriptionRoot+d.Value.Subscription); err == nil {
		f.endpoint = endpointOf(sub.Value)
	}
	if !n.slots.free(f) {
		return false
	}
	n.slots.take(d.Key, f)
	return true
}

func (n *Notifier) land(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slots.leave(key)
}

// accountOf returns the account of a subscription, which the tail of its key names.
func accountOf(subscription string) string {
	account, _, _ := strings.Cut(subscription, "/")
	return account
}

// endpointOf returns what has to answer so that a delivery ends: a host with its port, or the
// relay.
func endpointOf(s topic.Subscription) string {
	if s.Protocol != topic.HTTP && s.Protocol != topic.HTTPS {
		return mailEndpoint
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return s.Endpoint
	}
	return strings.ToLower(u.Host)
}
