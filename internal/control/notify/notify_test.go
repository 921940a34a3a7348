package notify

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/model/topic"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

func opened(t *testing.T, r request) topic.Envelope {
	t.Helper()
	var e topic.Envelope
	if err := json.Unmarshal([]byte(r.body), &e); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	return e
}

// verify checks a signature as receivers do: by the certificate that its URL leads to.
func (w *world) verify(n *Notifier, e topic.Envelope) {
	w.Helper()
	path, ok := strings.CutPrefix(e.SigningCertURL, base)
	if !ok {
		w.Fatalf("certificate at %q", e.SigningCertURL)
	}
	answer := httptest.NewRecorder()
	n.ServeCert(answer, httptest.NewRequest(http.MethodGet, path, nil))
	block, _ := pem.Decode(answer.Body.Bytes())
	if answer.Code != http.StatusOK || block == nil {
		w.Fatalf("certificate: %d %s", answer.Code, answer.Body)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		w.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.ca.Cert)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
		w.Errorf("certificate: %v", err)
	}
	signature, err := base64.StdEncoding.DecodeString(e.Signature)
	if err != nil {
		w.Fatal(err)
	}
	kind, sum := crypto.SHA1, sha1.Sum([]byte(e.Signed()))
	digest := sum[:]
	if e.SignatureVersion == "2" {
		sum := sha256.Sum256([]byte(e.Signed()))
		kind, digest = crypto.SHA256, sum[:]
	}
	if err := rsa.VerifyPKCS1v15(cert.PublicKey.(*rsa.PublicKey), kind, digest, signature); err != nil {
		w.Errorf("signature version %s: %v", e.SignatureVersion, err)
	}
}

func TestEventReachesItsSubscribers(t *testing.T) {
	w := newWorld(t)
	plain, raw, filtered, unasked := w.receiver(nil), w.receiver(nil), w.receiver(nil), w.receiver(nil)
	sub := w.subscribe("plain", topic.HTTP, plain.URL+"/in", nil)
	w.subscribe("raw", topic.HTTP, raw.URL, map[string]string{topic.RawMessageDelivery: "true"})
	w.subscribe("filtered", topic.HTTP, filtered.URL, map[string]string{topic.FilterPolicy: `{"EventID":["RDS-EVENT-0003"]}`})
	pending := w.subscribe("unasked", topic.HTTP, unasked.URL, nil)
	pending.Confirmed = false
	w.put(state.Put(keyOf(pending), pending))
	w.events(topic.EventSubscription{Name: "watch", Enabled: true, Sources: []string{"db"}, SourceType: "db-instance"})
	w.events(topic.EventSubscription{Name: "off"})
	n, _ := w.lead()
	w.raise("0005", "db")
	w.raise("0005", "other")
	w.raise("0003", "db")
	got := plain.gets(t, 2)
	w.idle()
	first := opened(t, got[0])
	if first.Subject != "RDS Notification Message" || !strings.Contains(first.Message, `"Event Message":"DB instance created"`) || first.Type != topic.Notification {
		t.Errorf("got %+v", first)
	}
	if first.MessageAttributes["EventID"] != (topic.Attribute{Type: "String", Value: "RDS-EVENT-0005"}) {
		t.Errorf("attributes %v", first.MessageAttributes)
	}
	w.verify(n, first)
	for name, want := range map[string]string{
		"X-Amz-Sns-Message-Type": "Notification", "X-Amz-Sns-Message-Id": first.MessageID, "X-Amz-Sns-Topic-Arn": topic.ARN(scope, "alarms"),
		"X-Amz-Sns-Subscription-Arn": sub.ARN(), "Content-Type": "text/plain; charset=UTF-8", "X-Amz-Sns-Rawdelivery": "",
	} {
		if have := got[0].header.Get(name); have != want {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
	}
	if got[0].path != "/in" {
		t.Errorf("path %s", got[0].path)
	}
	if all := raw.all(); len(all) != 2 || all[0].header.Get("X-Amz-Sns-Rawdelivery") != "true" || !strings.HasPrefix(all[0].body, `{"Event Source"`) {
		t.Errorf("raw %+v", all)
	}
	if all := filtered.all(); len(all) != 1 || !strings.Contains(all[0].body, "RDS-EVENT-0003") {
		t.Errorf("filtered %+v", all)
	}
	if all := unasked.all(); len(all) != 0 {
		t.Errorf("an endpoint that never confirmed got %+v", all)
	}
	if len(plain.all()) != 2 {
		t.Errorf("%d messages", len(plain.all()))
	}
}

func TestConfirmation(t *testing.T) {
	w := newWorld(t)
	r := w.receiver(nil)
	sub := w.subscribe("new", topic.HTTP, r.URL, nil)
	sub.Confirmed = false
	w.put(state.Put(keyOf(sub), sub))
	stale := sub
	stale.Token = "an older one"
	for _, s := range []topic.Subscription{stale, sub} {
		w.publish("ask-"+s.Token, "please confirm", func(m *topic.Message) { m.Kind, m.Only = topic.SubscriptionConfirmation, &s })
	}
	w.publish("early", "nobody confirmed yet", nil)
	n, _ := w.lead()
	got := r.gets(t, 1)
	w.idle()
	e := opened(t, got[0])
	if len(r.all()) != 1 || e.Type != topic.SubscriptionConfirmation || e.Token != sub.Token || e.SubscribeURL != topic.SubscribeURL(base, sub) {
		t.Errorf("got %+v", r.all())
	}
	if got[0].header.Get("X-Amz-Sns-Message-Type") != "SubscriptionConfirmation" || got[0].header.Get("X-Amz-Sns-Subscription-Arn") != "" {
		t.Errorf("headers %v", got[0].header)
	}
	w.verify(n, e)
	sub.Confirmed = true
	w.put(state.Put(keyOf(sub), sub))
	w.publish("late", "now", nil)
	if e := opened(t, r.gets(t, 2)[1]); e.Message != "now" {
		t.Errorf("got %+v", e)
	}
}

func TestRetriesBackOff(t *testing.T) {
	w := newWorld(t)
	var times []time.Time
	r := w.receiver(func(n int, answer http.ResponseWriter) bool {
		times = append(times, time.Now())
		switch n {
		case 1:
			answer.WriteHeader(http.StatusInternalServerError)
		case 2:
			answer.WriteHeader(http.StatusNotFound)
		case 3:
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	})
	w.subscribe("flaky", topic.HTTP, r.URL, nil)
	w.lead()
	w.publish("one", "hello", nil)
	got := r.gets(t, 4)
	w.idle()
	for _, g := range got {
		if e := opened(t, g); e.MessageID != "one" || e.Message != "hello" {
			t.Errorf("got %+v", e)
		}
	}
	for i, least := range []int{24, 48, 96} { // four fifths of 30, 60, 120 ms
		if gap := times[i+1].Sub(times[i]); gap < time.Duration(least)*time.Millisecond {
			t.Errorf("attempt %d came after %s", i+2, gap)
		}
	}
}

// TestRestartInTheMiddle checks that the next control plane delivers what one did not, as if
// nothing had happened.
func TestRestartInTheMiddle(t *testing.T) {
	w := newWorld(t)
	gate := make(chan struct{})
	r := w.receiver(func(n int, answer http.ResponseWriter) bool {
		select {
		case <-gate:
			return false
		default:
			answer.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
	})
	w.subscribe("later", topic.HTTP, r.URL, nil)
	w.events(topic.EventSubscription{Name: "watch", Enabled: true})
	_, stop := w.lead()
	w.raise("0005", "db")
	w.publish("one", "published before", nil)
	r.gets(t, 4)
	stop()
	w.raise("0003", "db")
	w.publish("two", "published while nobody led", nil)
	before := len(r.all())
	close(gate)
	w.lead()
	w.idle()
	ids := map[string]int{}
	for _, g := range r.all()[before:] {
		ids[opened(t, g).MessageID]++
	}
	if len(ids) != 4 || ids["one"] != 1 || ids["two"] != 1 {
		t.Errorf("delivered %v", ids)
	}
}

// TestKilledWhileDelivering checks that a delivery which was under way is made again.
func TestKilledWhileDelivering(t *testing.T) {
	w := newWorld(t)
	arrived, release := make(chan struct{}, 8), make(chan struct{})
	r := w.receiver(func(n int, _ http.ResponseWriter) bool {
		arrived <- struct{}{}
		if n == 1 {
			<-release
		}
		return false
	})
	w.subscribe("slow", topic.HTTP, r.URL, nil)
	_, stop := w.lead()
	w.publish("one", "hello", nil)
	<-arrived
	stop()
	close(release)
	w.lead()
	w.idle()
	if got := r.all(); len(got) != 2 || opened(t, got[1]).MessageID != "one" {
		t.Errorf("got %+v", got)
	}
}

// TestCursor checks that every event is published once, in whatever order they were written, and
// that none from before the subscription is.
func TestCursor(t *testing.T) {
	w := newWorld(t)
	r := w.receiver(nil)
	w.subscribe("all", topic.HTTP, r.URL, nil)
	w.raise("0005", "too-old")
	w.events(topic.EventSubscription{Name: "watch", Enabled: true, Created: time.Now()})
	_, stop := w.lead()
	for i := range 130 {
		w.raise("0006", fmt.Sprintf("db-%d", i))
	}
	r.gets(t, 130)
	w.idle()
	stop()
	w.lead()
	w.raise("0004", "last")
	got := r.gets(t, 131)
	w.idle()
	if len(r.all()) != 131 {
		t.Errorf("%d messages", len(r.all()))
	}
	if last := opened(t, got[130]); !strings.Contains(last.Message, `"Source ID":"last"`) {
		t.Errorf("the last is %s", last.Message)
	}
	for _, g := range got {
		if strings.Contains(g.body, "too-old") {
			t.Error("an event from before the subscription was published")
		}
	}
}

func TestOneThatHangsHoldsNobodyUp(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	hangs := w.receiver(func(int, http.ResponseWriter) bool { <-release; return false })
	t.Cleanup(func() { close(release) })
	r := w.receiver(nil)
	w.subscribe("a-hangs", topic.HTTP, hangs.URL, nil)
	w.subscribe("b-works", topic.HTTP, r.URL, nil)
	began := time.Now()
	_, stop := w.lead()
	t.Cleanup(stop)
	for i := range 20 {
		w.publish(fmt.Sprintf("m%d", i), "hello", nil)
	}
	r.gets(t, 20)
	// An attempt that was given up is followed by another.
	n := len(hangs.all())
	if most := maxPerReceiver * (1 + int(time.Since(began)/attemptTimeout)); n > most {
		t.Errorf("%d deliveries to one that hangs, where %d are due", n, most)
	}
	stop()
}

func TestOneThatEndedGetsNothing(t *testing.T) {
	w := newWorld(t)
	r := w.receiver(func(n int, answer http.ResponseWriter) bool {
		answer.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	sub := w.subscribe("gone", topic.HTTP, r.URL, nil)
	w.lead()
	w.publish("one", "hello", nil)
	r.gets(t, 1)
	w.put(state.Delete(keyOf(sub)))
	w.idle()
	w.put(state.Delete(state.Topic(scope.Account, scope.Region, "alarms")))
	w.publish("two", "for nobody", nil)
	w.idle()
}

func TestGivenUp(t *testing.T) {
	w := newWorld(t)
	w.cfg.Retry = Retry{First: 10 * time.Millisecond, Longest: 50 * time.Millisecond, Expire: patience.For(2 * time.Second)}
	r := w.receiver(func(n int, answer http.ResponseWriter) bool {
		answer.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	w.subscribe("never", topic.HTTP, r.URL, nil)
	w.lead()
	w.publish("one", "hello", nil)
	r.gets(t, 2)
	w.idle()
}

func TestPendingOnesAreForgotten(t *testing.T) {
	w := newWorld(t)
	sub := w.subscribe("old", topic.HTTP, "http://127.0.0.1:1/", nil)
	sub.Confirmed, sub.Asked = false, time.Now().Add(-topic.TokenLife-time.Minute)
	w.put(state.Put(keyOf(sub), sub))
	w.lead()
	testkit.Eventually(t, 5*time.Second, func() error {
		if _, _, there := w.cache.Raw(keyOf(sub)); there {
			return errStill
		}
		return nil
	})
}

// TestReceiversThatMisbehave checks that no answer of an endpoint takes a delivery elsewhere, or
// fills the memory.
func TestReceiversThatMisbehave(t *testing.T) {
	w := newWorld(t)
	trap := w.receiver(nil)
	wi := newWeb(w.ca, nil)
	e := topic.Envelope{Type: topic.Notification, MessageID: "id", Message: "m"}
	redirects := w.receiver(func(_ int, answer http.ResponseWriter) bool {
		answer.Header().Set("Location", trap.URL)
		answer.WriteHeader(http.StatusTemporaryRedirect)
		return true
	})
	endless := w.receiver(func(_ int, answer http.ResponseWriter) bool {
		for range 1000 {
			if _, err := answer.Write(make([]byte, 64<<10)); err != nil {
				return true
			}
		}
		t.Error("64 MB were read")
		return true
	})
	headers := w.receiver(func(_ int, answer http.ResponseWriter) bool {
		answer.Header().Set("X-Much", strings.Repeat("x", 1<<20))
		return false
	})
	cases := map[string]struct{ endpoint, want string }{
		"a redirect":            {redirects.URL, "redirects"},
		"headers without end":   {headers.URL, "header"},
		"the metadata service":  {"http://169.254.169.254/latest/meta-data", "not allowed"},
		"it, in IPv6's form":    {"http://[::ffff:169.254.169.254]/", "not allowed"},
		"a link-local one":      {"http://[fe80::1]/", "not allowed"},
		"any address":           {"http://0.0.0.0:1/", "not allowed"},
		"another scheme":        {"https://127.0.0.1:1/", "scheme"},
		"a file":                {"file:///etc/passwd", "scheme"},
		"nobody there":          {"http://127.0.0.1:1/", "refused"},
		"what is no URL at all": {"http://%zz", "prepare"},
	}
	for name, c := range cases {
		err := wi.post(t.Context(), e, topic.Subscription{Protocol: topic.HTTP, Endpoint: c.endpoint})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := wi.post(t.Context(), e, topic.Subscription{Protocol: topic.HTTP, Endpoint: endless.URL}); err != nil {
		t.Errorf("an answer without end: %v", err)
	}
	if got := trap.all(); len(got) != 0 {
		t.Errorf("followed to %+v", got)
	}
	password := "http://user:never-told@127.0.0.1:1/"
	if err := wi.post(t.Context(), e, topic.Subscription{Protocol: topic.HTTP, Endpoint: password}); err == nil || strings.Contains(err.Error(), "never-told") {
		t.Errorf("error %v", err)
	}
}

func TestHTTPS(t *testing.T) {
	w := newWorld(t)
	r := &receiver{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(r.take))
	pair, err := w.ca.Issue(certs.Subject{CommonName: "hook", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	w.subscribe("secure", topic.HTTPS, server.URL, nil)
	w.lead()
	w.publish("one", "hello", nil)
	r.gets(t, 1)
	w.idle()

	stranger := httptest.NewTLSServer(http.HandlerFunc(r.take))
	t.Cleanup(stranger.Close)
	err = newWeb(w.ca, nil).post(t.Context(), topic.Envelope{Type: topic.Notification}, topic.Subscription{Protocol: topic.HTTPS, Endpoint: stranger.URL})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger's certificate: %v", err)
	}
}

func TestSignatures(t *testing.T) {
	w := newWorld(t)
	r := w.receiver(nil)
	w.subscribe("v2", topic.HTTP, r.URL, nil)
	w.put(state.Put(state.Topic(scope.Account, scope.Region, "alarms"), topic.Topic{Scope: scope, Name: "alarms", Attributes: map[string]string{"SignatureVersion": "2"}}))
	n, stop := w.lead()
	w.publish("one", "hello é\n", func(m *topic.Message) { m.Subject = "Greetings" })
	first := opened(t, r.gets(t, 1)[0])
	if first.SignatureVersion != "2" {
		t.Errorf("version %s", first.SignatureVersion)
	}
	w.verify(n, first)
	w.idle()
	stop()
	again, _ := w.lead()
	w.publish("two", "hello", nil)
	second := opened(t, r.gets(t, 2)[1])
	w.verify(again, second)
	if first.SigningCertURL != second.SigningCertURL {
		t.Error("a restart made another key")
	}
	w.verify(again, first)
	for path, code := range map[string]int{CertPath + "none.pem": 404, CertPath: 404, strings.TrimPrefix(strings.TrimSuffix(first.SigningCertURL, ".pem"), base): 404} {
		answer := httptest.NewRecorder()
		again.ServeCert(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != code {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
	answer := httptest.NewRecorder()
	again.ServeCert(answer, httptest.NewRequest(http.MethodPost, CertPath+"x.pem", nil))
	if answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", answer.Code)
	}
}

func TestSigningCertificateIsRenewed(t *testing.T) {
	w := newWorld(t)
	w.ca.Lifetime = time.Second
	n, _ := w.lead()
	s := &signer{dir: t.TempDir(), ca: w.ca, base: base, commit: n.commit}
	urls := map[string]bool{}
	testkit.Eventually(t, 10*time.Second, func() error {
		e := topic.Envelope{Type: topic.Notification, Message: "m"}
		if err := s.sign(t.Context(), &e, ""); err != nil {
			t.Fatal(err)
		}
		if urls[e.SigningCertURL] = true; len(urls) < 2 {
			return errStill
		}
		return nil
	})
}

func TestLater(t *testing.T) {
	n := &Notifier{Config: Config{Retry: DefaultRetry}}
	now := time.Now()
	d := Delivery{Begun: now, Next: now}
	total, attempts := time.Duration(0), 0
	for again := true; again; attempts++ {
		before := d.Next
		d, again = n.later(d, errStill, before)
		wait := d.Next.Sub(before)
		if most := DefaultRetry.Longest * 6 / 5; wait > most || wait < DefaultRetry.First*4/5 {
			t.Fatalf("attempt %d waits %s", attempts, wait)
		}
		total += wait
	}
	if total < 23*time.Hour || attempts < 100 || attempts > 250 {
		t.Errorf("%d attempts in %s", attempts, total)
	}
}

func TestTooManyWait(t *testing.T) {
	w := newWorld(t)
	sub := w.subscribe("full", topic.HTTP, "http://127.0.0.1:1/", nil)
	tail, begun := subscriptionTail(sub), time.Now().UTC()
	for i := range maxQueue {
		d := Delivery{Subscription: tail, Begun: begun.Add(time.Duration(i)), Next: begun.Add(time.Hour)}
		w.put(state.Put(state.Delivery(tail, fmt.Sprintf("m%04d", i)), d))
	}
	w.lead()
	w.publish("newest", "hello", nil)
	testkit.Eventually(t, 10*time.Second, func() error {
		if _, _, there := w.cache.Raw(state.Delivery(tail, "m0000")); there {
			return errStill
		}
		if _, _, there := w.cache.Raw(state.Delivery(tail, "newest")); !there {
			return errStill
		}
		return nil
	})
}
