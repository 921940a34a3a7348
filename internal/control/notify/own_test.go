package notify

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/topic"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// TestNothingGoesToTheHomeItself checks that nothing goes there by address, by a name that leads
// there, or by a redirect. Others on the same machine get their messages.
func TestNothingGoesToTheHomeItself(t *testing.T) {
	w := newWorld(t)
	home, works := w.receiver(nil), w.receiver(nil)
	u, err := url.Parse(home.URL)
	if err != nil {
		t.Fatal(err)
	}
	listener := netip.MustParseAddrPort(u.Host)
	w.cfg.Own = func(at netip.AddrPort) bool {
		return at.Port() == listener.Port() && at.Addr().IsLoopback()
	}
	redirects := w.receiver(func(_ int, answer http.ResponseWriter) bool {
		answer.Header().Set("Location", home.URL)
		answer.WriteHeader(http.StatusTemporaryRedirect)
		return true
	})
	forbidden := map[string]string{
		"address": home.URL, "name": fmt.Sprintf("http://localhost:%d/", listener.Port()),
		"mapped": fmt.Sprintf("http://[::ffff:127.0.0.1]:%d/", listener.Port()), "redirect": redirects.URL,
	}
	subs := map[string]string{}
	for id, endpoint := range forbidden {
		subs[id] = subscriptionTail(w.subscribe(id, topic.HTTP, endpoint, nil))
	}
	w.subscribe("works", topic.HTTP, works.URL, nil)
	w.lead()
	w.publish("one", "hello", nil)
	works.gets(t, 1)
	for id, want := range map[string]string{"address": "of this home", "name": "of this home", "mapped": "of this home", "redirect": "redirects"} {
		testkit.Eventually(t, 10*time.Second, func() error {
			d, err := state.Load[Delivery](w.cache, state.Delivery(subs[id], "one"))
			if err == nil && !strings.Contains(d.Value.Error, want) {
				err = fmt.Errorf("%s: %q, want %q", id, d.Value.Error, want)
			}
			return err
		})
	}
	if got := home.all(); len(got) != 0 {
		t.Errorf("the home got %+v", got)
	}
}

// TestErrorsHoldNoURL checks errors for URLs: errors are kept and logged, and a URL may hold a
// password.
func TestErrorsHoldNoURL(t *testing.T) {
	w := newWorld(t)
	wi := newWeb(w.ca, nil)
	for _, endpoint := range []string{
		"http://user:never-told@127.0.0.1:1/", "http://user:never-told@127.0.0.1:1/%zz", "http://user:never-told@[::1", "http://user:never-told@no.such.invalid/", "https://user:never-told@127.0.0.1:1/",
	} {
		err := wi.post(t.Context(), topic.Envelope{Type: topic.Notification}, topic.Subscription{Protocol: topic.HTTP, Endpoint: endpoint})
		if err == nil || strings.Contains(err.Error(), "never-told") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
