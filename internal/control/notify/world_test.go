package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

var scope = spec.Scope{Account: "123456789012", Region: "us-east-1"}

const base = "https://127.0.0.1:7443"

// quick makes tests of retries short.
var quick = Retry{First: 30 * time.Millisecond, Longest: 200 * time.Millisecond, Expire: time.Minute}

// world is a real etcd with a topic in it. Notifiers come and go.
type world struct {
	*testing.T
	store *state.Store
	cache *state.Cache
	ca    *certs.CA
	cfg   Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, store: etcdtest.Store(t), ca: ca}
	w.cfg = Config{Store: w.store, Base: base, CA: ca, Dir: t.TempDir(), Retry: quick, Log: slog.New(slog.DiscardHandler)}
	w.cache = etcdtest.Cache(t, w.store, nil)
	w.put(state.Put(state.Topic(scope.Account, scope.Region, "alarms"), topic.Topic{Scope: scope, Name: "alarms"}))
	return w
}

func (w *world) put(ops ...state.Op) {
	w.Helper()
	etcdtest.Put(w.T, w.store, w.cache, ops...)
}

// lead runs a notifier with a mirror of its own, as another control plane would, until stop is
// called or the test ends.
func (w *world) lead() (n *Notifier, stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cfg := w.cfg
	cfg.Cache = state.NewCache(w.store.Client, cfg.Log, state.Root)
	n = New(cfg)
	var done sync.WaitGroup
	done.Go(func() { cfg.Cache.Run(ctx) })
	done.Go(func() { n.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	w.Cleanup(stop)
	return n, stop
}

// subscribe makes a confirmed subscription.
func (w *world) subscribe(id, protocol, endpoint string, attributes map[string]string) topic.Subscription {
	w.Helper()
	s := topic.Subscription{
		Scope: scope, ID: id, Topic: "alarms", Protocol: protocol, Endpoint: endpoint, Attributes: attributes, Confirmed: true, Token: "token-" + id, Asked: time.Now(),
	}
	w.put(state.Put(keyOf(s), s))
	return s
}

func keyOf(s topic.Subscription) string {
	return state.Subscription(s.Account, s.Region, s.Topic, s.ID)
}

// publish writes a message as the API does.
func (w *world) publish(id, text string, change func(*topic.Message)) {
	w.Helper()
	m := topic.Message{Kind: topic.Notification, ID: id, Scope: scope, Topic: "alarms", Body: []byte(text), At: time.Now().UTC()}
	if change != nil {
		change(&m)
	}
	w.put(state.Put(state.Message(fmt.Sprintf("%016x-%s", m.At.UnixNano(), m.ID)), m))
}

// raise writes an event as reconcile does.
func (w *world) raise(number, name string) event.Event {
	w.Helper()
	e, err := event.Make(event.Source{Scope: scope, Type: event.Instance, Name: name}, number, time.Now().UTC())
	if err != nil {
		w.Fatal(err)
	}
	w.put(state.Put(state.Event(scope.Account, scope.Region, e.Key(name)), e))
	return e
}

// events subscribes the topic to events.
func (w *world) events(s topic.EventSubscription) {
	w.Helper()
	s.Scope, s.TopicARN = scope, topic.ARN(scope, "alarms")
	if s.Created.IsZero() {
		s.Created = time.Now().Add(-time.Minute)
	}
	w.put(state.Put(state.EventSub(scope.Account, scope.Region, s.Name), s))
}

// idle waits until nothing is on its way.
func (w *world) idle() {
	w.Helper()
	testkit.Eventually(w.T, 10*time.Second, func() error {
		if n := len(w.cache.Keys(state.MessageRoot)) + len(w.cache.Keys(state.DeliveryRoot)); n > 0 {
			return fmt.Errorf("%d are on their way", n)
		}
		return nil
	})
}

// request is what a receiver got.
type request struct {
	header http.Header
	body   string
	path   string
}

// receiver is an endpoint that records what it gets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []request                               // guarded by mu
	answer func(n int, w http.ResponseWriter) bool // of the nth request; false: as usual
}

func (w *world) receiver(answer func(n int, w http.ResponseWriter) bool) *receiver {
	w.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	w.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.got = append(r.got, request{q.Header, string(body), q.URL.Path})
	n := len(r.got)
	r.mu.Unlock()
	if r.answer != nil && r.answer(n, w) {
		return
	}
	fmt.Fprint(w, "thank you")
}

func (r *receiver) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// gets waits for the nth request.
func (r *receiver) gets(t *testing.T, n int) []request {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		if have := len(r.all()); have < n {
			return fmt.Errorf("%d requests, not %d", have, n)
		}
		return nil
	})
	return r.all()
}

var errStill = errors.New("not yet")

// relayOf returns a home's relay.
func relayOf(addr string) *home.SMTP {
	return &home.SMTP{Relay: addr, From: "Howdah <howdah@example.org>"}
}
