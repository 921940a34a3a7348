// Package notify delivers messages to the subscribers of topics, at least once. It runs in the
// control plane that leads.
//
// Everything that is on its way is in etcd. Events are read up to a cursor, which is a revision. So
// none is left out, however they were written. Messages that users publish wait under keys of their
// own. Both become deliveries, one for each subscriber, in the transaction that moves the cursor or
// removes the message. A delivery is removed when its receiver has taken it, or after Expire. At
// worst a crash repeats a delivery, and receivers recognise it by its MessageId.
//
// Invariants: only confirmed subscriptions get messages, except for their own confirmation. A
// request goes to the URL that was subscribed and nowhere else, because redirects are not followed
// and no proxy is used. It never goes to the home's own listeners. It has a deadline, and no more
// is read of the answer than is needed.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// Retry says when a delivery that failed is tried again: after First, then after twice as long each
// time, up to Longest. A delivery that is older than Expire is given up.
type Retry struct{ First, Longest, Expire time.Duration }

// DefaultRetry keeps trying for a day.
var DefaultRetry = Retry{First: time.Second, Longest: 10 * time.Minute, Expire: 24 * time.Hour}

// Config is what a notifier needs. All fields except SMTP and Own are required.
type Config struct {
	Store *state.Store
	Cache *state.Cache // of state.Root
	// Base is the URL of the API that receivers reach.
	Base string
	// CA signs the certificate of the key in Dir.
	CA  *certs.CA
	Dir string
	// SMTP is the relay for mail. nil says that there is none.
	SMTP *home.SMTP
	// Own reports whether the home itself listens at an address. Nothing that users subscribed is
	// delivered there.
	Own   func(netip.AddrPort) bool
	Retry Retry
	Log   *slog.Logger
}

// Notifier delivers messages. Use New.
type Notifier struct {
	Config
	signer *signer
	web    *web
	wake   chan struct{}

	mu    sync.Mutex
	news  bool  // events or messages may wait; guarded by mu
	slots slots // deliveries that are being made; guarded by mu

	counting sync.Mutex // held while what was given up is counted
}

// Delivery is a message on its way to a subscription.
type Delivery struct {
	Message topic.Message `json:"message"`
	// Subscription is the tail of the subscription's key.
	Subscription string    `json:"subscription"`
	Begun        time.Time `json:"begun"`
	Attempts     int       `json:"attempts"` // that failed
	Next         time.Time `json:"next"`     // not before
	Error        string    `json:"error,omitempty"`
}

// Cursor is the revision up to which events were published.
type Cursor struct {
	Revision int64 `json:"revision"`
}

// New makes a notifier. Call it before the cache runs.
func New(cfg Config) *Notifier {
	n := &Notifier{Config: cfg, wake: make(chan struct{}, 1), slots: newSlots(), news: true}
	n.signer = &signer{dir: cfg.Dir, ca: cfg.CA, base: cfg.Base, commit: n.commit}
	n.web = newWeb(cfg.CA, cfg.Own)
	cfg.Cache.OnChange(n.changed)
	return n
}

func (n *Notifier) changed(keys []string) {
	for _, key := range keys {
		if strings.HasPrefix(key, state.EventRoot) || strings.HasPrefix(key, state.MessageRoot) {
			n.mu.Lock()
			n.news = true
			n.mu.Unlock()
			n.poke()
			return
		}
	}
}

func (n *Notifier) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// tick is the longest pause between two looks at the queue.
const tick = time.Second

// Run delivers until ctx ends. Then it waits for the deliveries under way.
func (n *Notifier) Run(ctx context.Context) error {
	if err := n.Cache.Loaded(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	n.news = true // another may have led meanwhile
	n.mu.Unlock()
	var busy sync.WaitGroup
	defer busy.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		case <-timer.C:
		}
		if err := n.fanOut(ctx); err != nil && ctx.Err() == nil {
			n.Log.Warn("queue notifications", "error", err)
		}
		next := n.dispatch(ctx, &busy)
		if err := errors.Join(n.forget(ctx), n.forgetCounts(ctx)); err != nil && ctx.Err() == nil {
			n.Log.Warn("forget subscriptions", "error", err)
		}
		timer.Reset(next)
	}
}

// forget removes subscriptions that nobody confirmed in time.
func (n *Notifier) forget(ctx context.Context) error {
	now := time.Now()
	for _, r := range state.LoadAll[topic.Subscription](n.Cache, state.SubscriptionRoot) {
		if !r.Value.Expired(now) {
			continue
		}
		if err := n.commit(ctx, state.Remove(r.Key, r.Revision)); err != nil {
			return err
		}
	}
	return nil
}

// commit writes, and makes later reads see it.
func (n *Notifier) commit(ctx context.Context, ops ...state.Op) error {
	revision, err := n.Store.Commit(ctx, ops...)
	if err != nil {
		return err
	}
	return n.Cache.WaitRevision(ctx, revision)
}
