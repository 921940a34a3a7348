package hostapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state"
	"howdah/internal/state/format"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/patience"
)

// world is a home whose hosts' API answers.
type world struct {
	*hometest.Home
	url     string
	server  *Server
	members *certs.CA

	mu    sync.Mutex
	beats []string // guarded by mu
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Home: hometest.New(t)}
	members, err := certs.New("members")
	if err != nil {
		t.Fatal(err)
	}
	w.members = members
	server := &Server{
		Members: func(context.Context) (*certs.CA, error) { return members, nil },
		Home:    w.Home.Home, CA: w.CA, Store: w.Store, Etcd: w.Store.Client, Log: slog.New(slog.DiscardHandler), Login: onlyJane,
		Beat: func(host, agent string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.beats = append(w.beats, host+agent)
		},
	}
	w.server = server
	config, err := w.Issue(t, "howdah-serve").ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewUnstartedServer(server.Handler())
	listener.Listener = tls.NewListener(listener.Listener, config)
	listener.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	listener.Start()
	t.Cleanup(listener.Close)
	w.url = "https://" + listener.Listener.Addr().String()
	if _, err := w.Store.Commit(t.Context(), state.Put(state.Control("s1"), ControlMember{Name: "s1", URL: w.url})); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) tokens(t *testing.T) home.Join {
	t.Helper()
	tokens, err := w.Join()
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func (w *world) client(t *testing.T, credentials Credentials) *Client {
	t.Helper()
	c, err := NewClient(w.url, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func leafOf(t *testing.T, pair certs.Pair) *tls.Certificate {
	t.Helper()
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &cert
}

func TestJoinGivesAHostWhatItNeeds(t *testing.T) {
	w := newWorld(t)
	answer, pair, err := Join(t.Context(), w.url, w.tokens(t).AgentToken, Agent, "db1")
	if err != nil {
		t.Fatal(err)
	}
	want := JoinAnswer{HomeID: w.ID, CA: w.CA.CertPEM, Certificate: answer.Certificate, Etcd: w.Home.Etcd, Control: []string{w.url}}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Error(diff)
	}
	leaf := leafOf(t, pair).Leaf
	if leaf.Subject.CommonName != "agent:db1" || len(leaf.IPAddresses)+len(leaf.DNSNames) > 0 {
		t.Errorf("the certificate is for %s, %v, %v", leaf.Subject, leaf.IPAddresses, leaf.DNSNames)
	}
	if err := leaf.CheckSignatureFrom(w.CA.Cert); err != nil {
		t.Error(err)
	}
	if err := w.client(t, pair).Heartbeat(t.Context(), ""); err != nil {
		t.Errorf("first heartbeat: %v", err)
	}
}

func TestJoinRefuses(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens(t)
	other, err := home.Ensure(filepath.Join(t.TempDir(), "other"), home.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := other.Join()
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := certs.Fingerprint(w.CA.Cert)
	cases := []struct {
		name, token string
		kind        Kind
		host        string
		want        error
	}{
		{"a token that was never given", home.NewToken(fingerprint), Agent, "db1", ErrRefused},
		{"the token of a control plane", tokens.ServerToken, Agent, "db1", ErrRefused},
		{"the token of another home", stranger.AgentToken, Agent, "db1", certs.ErrNotOurs},
		{"the name of the control plane", tokens.AgentToken, Agent, "db1:serve", ErrRefused},
		{"no name", tokens.AgentToken, Agent, "", ErrRefused},
		{"a name that leads elsewhere", tokens.AgentToken, Edge, "../x", ErrRefused},
		{"a kind that there is not", tokens.AgentToken, "serve", "db1", ErrRefused},
	}
	for _, c := range cases {
		if _, _, err := Join(t.Context(), w.url, c.token, c.kind, c.host); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, _, err := Join(t.Context(), w.url, "no token", Agent, "db1"); err == nil {
		t.Error("joined with a text that is no token")
	}
}

// Only the token of control planes gives the key of the authority away.
func TestJoinServer(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens(t)
	for name, token := range map[string]string{"agent's": tokens.AgentToken, "unknown": home.NewToken(certs.Fingerprint(w.CA.Cert))} {
		if _, err := JoinServer(t.Context(), w.url, token, "s2", "127.0.0.1:1"); !errors.Is(err, ErrRefused) {
			t.Errorf("with the %s token: %v, want ErrRefused", name, err)
		}
	}
	if _, err := JoinServer(t.Context(), w.url, tokens.ServerToken, "s2", "nowhere"); !errors.Is(err, ErrRefused) {
		t.Errorf("with a peer address that is none: %v, want ErrRefused", err)
	}
	peer := testkit.FreeAddr(t)
	newer := format.Record{Format: format.Newest + 1, Release: "99.1"}
	if _, err := w.Store.Commit(t.Context(), state.Put(state.HomeFormat, newer)); err != nil {
		t.Fatal(err)
	}
	if _, err := JoinServer(t.Context(), w.url, tokens.ServerToken, "s2", peer); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "start howdah 99.1 or newer there") {
		t.Errorf("where records are of a newer release: %v, want ErrRefused", err)
	}
	newer.Format = format.Newest
	if _, err := w.Store.Commit(t.Context(), state.Put(state.HomeFormat, newer)); err != nil {
		t.Fatal(err)
	}
	answer, err := JoinServer(t.Context(), w.url, tokens.ServerToken, "s2", peer)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := certs.ParseCA(answer.CACert, answer.CAKey)
	if err != nil || certs.Fingerprint(ca.Cert) != certs.Fingerprint(w.CA.Cert) {
		t.Errorf("the authority that was given away: %v", err)
	}
	if tokens.SealKey, err = w.Home.SealKey(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tokens, answer.Join); diff != "" {
		t.Error(diff)
	}
	if answer.Home.ID != w.ID || !strings.Contains(answer.Peers, "s2=https://"+peer) || !strings.Contains(answer.Peers, "s1=") {
		t.Errorf("home %s, peers %s", answer.Home.ID, answer.Peers)
	}
}

func TestHeartbeatsCountForTheHostOfTheCertificate(t *testing.T) {
	w := newWorld(t)
	if err := w.client(t, w.Issue(t, "agent:db1")).Heartbeat(t.Context(), "/life"); err != nil {
		t.Error(err)
	}
	for _, body := range []any{struct{}{}, "no object", strings.Repeat("x", 2*maxHeartbeat)} {
		if err := w.client(t, w.Issue(t, "agent:db2")).call(t.Context(), "heartbeat", body, nil); err != nil {
			t.Errorf("a heartbeat of an older agent, or a newer one: %v", err)
		}
	}
	anonymous := newClient(w.url, certs.PinnedTLS(certs.Fingerprint(w.CA.Cert)))
	t.Cleanup(anonymous.Close)
	for name, c := range map[string]*Client{
		"an edge": w.client(t, w.Issue(t, "edge:db1")), "the control plane": w.client(t, w.Issue(t, "howdah-serve")), "nobody": anonymous,
	} {
		if err := c.Heartbeat(t.Context(), ""); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", name, err)
		}
	}
	foreign, err := certs.New("foreign")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := foreign.Issue(certs.Subject{CommonName: "agent:db3"})
	if err != nil {
		t.Fatal(err)
	}
	pair.CAPEM = w.CA.CertPEM
	if err := w.client(t, pair).Heartbeat(t.Context(), ""); err == nil {
		t.Error("a certificate of another authority counted")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff([]string{"db1/life", "db2", "db2", "db2"}, w.beats); diff != "" {
		t.Error(diff)
	}
}

func TestBadInput(t *testing.T) {
	w := newWorld(t)
	config, err := w.Issue(t, "agent:db1").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 10 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	token := w.tokens(t).AgentToken
	withCSR := func(csr string) string {
		text, err := json.Marshal(JoinRequest{Token: token, Kind: Agent, Name: "db1", CSR: []byte(csr)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	cases := []struct {
		name, method, path, body string
		want                     int
	}{
		{"no JSON", "POST", "join", "token=x", 400},
		{"nothing", "POST", "join", "", 400},
		{"another type", "POST", "join", `{"token": 7}`, 400},
		{"cut off", "POST", "certificate", `{"csr": "AAAA`, 400},
		{"a request that is none", "POST", "certificate", `{"csr": "AAAA"}`, 400},
		{"a join with a request that is none", "POST", "join", withCSR("hello"), 400},
		{"more than it reads", "POST", "join", `{"token": "` + strings.Repeat("x", 2<<20) + `"}`, 400},
		{"a method that there is not", "GET", "join", "", 405},
		{"a path that there is not", "POST", "nothing", "{}", 404},
		{"a heartbeat with a body", "POST", "heartbeat", `{}`, 204},
	}
	for _, c := range cases {
		request, err := http.NewRequestWithContext(t.Context(), c.method, w.url+Path+c.path, bytes.NewBufferString(c.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.want {
			t.Errorf("%s: %s %s, want %d", c.name, answer.Status, text, c.want)
		}
		if bytes.Contains(text, []byte(token)) {
			t.Errorf("%s: the answer holds the token", c.name)
		}
	}
}

// A control plane that cannot reach its state has not refused: a host may try again.
func TestAnOutageIsNoRefusal(t *testing.T) {
	w := newWorld(t)
	w.StopEtcd()
	_, _, err := Join(t.Context(), w.url, w.tokens(t).AgentToken, Agent, "db1")
	if err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("without etcd: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, _, err = Join(t.Context(), "https://"+l.Addr().String(), w.tokens(t).AgentToken, Agent, "db1")
	if err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("without a control plane: %v", err)
	}
}

// A process with a certificate of three seconds runs on. It has the next certificate in time, in
// memory and on disk, and no call fails. On a busy machine the certificate lives longer, because a
// renewal may take only a third of a life.
func TestKeepIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.CA.Lifetime = patience.For(3 * time.Second)
	first := w.Issue(t, "agent:db1")
	first.CAPEM = w.CA.CertPEM
	identity, err := certs.NewIdentity(first)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { KeepIdentity(ctx, identity, dir, w.Store, slog.New(slog.DiscardHandler)) })
	t.Cleanup(func() { cancel(); done.Wait() })
	seen := map[string]bool{}
	testkit.Eventually(t, 20*time.Second, func() error {
		client, err := NewClient(w.url, identity)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := client.Heartbeat(t.Context(), ""); err != nil {
			t.Fatalf("heartbeat with certificate %d: %v", len(seen)+1, err)
		}
		seen[string(identity.Pair().CertPEM)] = true
		if len(seen) < 3 {
			return errors.New("few certificates yet")
		}
		return nil
	})
	cancel()
	done.Wait()
	kept, err := certs.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept.CertPEM) != string(identity.Pair().CertPEM) || string(kept.KeyPEM) != string(identity.Pair().KeyPEM) {
		t.Error("on disk is another certificate than in use")
	}
}
