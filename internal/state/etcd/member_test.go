package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/identity/certs"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

func issue(t *testing.T, ca *certs.CA, name string) (certs.Pair, string) {
	t.Helper()
	pair, err := ca.Issue(certs.Subject{CommonName: name, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := pair.Write(dir); err != nil {
		t.Fatal(err)
	}
	return pair, dir
}

func newConfig(t *testing.T, ca *certs.CA, name string) (Config, certs.Pair) {
	const common = "howdah-serve" // all members have it
	pair, certDir := issue(t, ca, common)
	return Config{
		Name: name, Dir: t.TempDir(), CertDir: certDir, PeerName: common,
		ClientAddr: testkit.FreeAddr(t), PeerAddr: testkit.FreeAddr(t), Log: slog.New(slog.DiscardHandler),
	}, pair
}

func start(t *testing.T, cfg Config) *Member {
	t.Helper()
	m, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestMemberKeepsItsDataOverARestart(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := newConfig(t, ca, "s1")
	m, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Client.Put(t.Context(), "/k", "v"); err != nil {
		t.Fatal(err)
	}
	m.Close()
	m = start(t, cfg)
	got, err := m.Client.Get(t.Context(), "/k")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "v" {
		t.Fatalf("after a restart: %v, %v", got, err)
	}
}

func TestClientsNeedACertificateOfOurAuthority(t *testing.T) {
	ca, _ := certs.New("test")
	cfg, pair := newConfig(t, ca, "s1")
	start(t, cfg)
	put := func(pair certs.Pair) error {
		client, err := Dial(t.Context(), []string{"https://" + cfg.ClientAddr}, pair)
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience.For(3*time.Second))
		defer cancel()
		_, err = client.Put(ctx, "/k", "v")
		return err
	}
	if err := put(pair); err != nil {
		t.Errorf("our own client: %v", err)
	}
	other, _ := certs.New("other")
	stranger, _ := issue(t, other, "s1")
	stranger.CAPEM = ca.CertPEM
	if err := put(stranger); err == nil {
		t.Error("a client with a stranger's certificate wrote")
	}
}

// TestOnlyMembersArePeers checks that the key of a host is refused at the peer port, although it is
// of the same authority. What a peer says becomes part of the log.
func TestOnlyMembersArePeers(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	cfg, member := newConfig(t, ca, "s1")
	start(t, cfg)
	host, _ := issue(t, ca, "agent:db1")
	for _, path := range []string{"/members", "/raft/probing", "/version"} {
		ask := func(pair certs.Pair) error {
			config, err := pair.ClientTLS()
			if err != nil {
				return err
			}
			transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+cfg.PeerAddr+path, nil)
			if err != nil {
				return err
			}
			answer, err := transport.RoundTrip(q)
			if err != nil {
				return err
			}
			return answer.Body.Close()
		}
		if err := ask(member); err != nil {
			t.Errorf("a member asks for %s: %v", path, err)
		}
		if ask(host) == nil {
			t.Errorf("a host was answered %s", path)
		}
	}
}

func TestThreeMembersSurviveTheLossOfAnyOne(t *testing.T) {
	ca, _ := certs.New("test")
	var members []*Member
	var urls []string
	var pair certs.Pair
	for i := range 3 {
		cfg, p := newConfig(t, ca, fmt.Sprintf("s%d", i+1))
		pair = p
		if i > 0 {
			peers, err := Add(t.Context(), members[0].Client, cfg.Name, cfg.PeerAddr)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Add(t.Context(), members[0].Client, cfg.Name, cfg.PeerAddr)
			if err != nil || again != peers {
				t.Fatalf("adding twice: %q then %q, %v", peers, again, err)
			}
			if strings.Count(peers, "=") != i+1 {
				t.Fatalf("initial cluster %q", peers)
			}
			cfg.Peers, cfg.Join = peers, true
		}
		m := start(t, cfg)
		if i > 0 && m.alone() {
			t.Error("one that learns of others believes to be alone")
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience.For(30*time.Second))
		if err := m.Promote(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		members, urls = append(members, m), append(urls, "https://"+cfg.ClientAddr)
	}
	known, err := ClientURLs(t.Context(), members[2].Client)
	if err != nil || len(known) != 3 {
		t.Fatalf("known client URLs %v, %v", known, err)
	}
	client, err := Dial(t.Context(), urls, pair)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	put(t, client, "/before", "v")
	for _, m := range members {
		if m.alone() {
			t.Error("one of three believes to be alone")
		}
		seesAll(t, client, m)
	}
	members[0].Close()
	put(t, client, "/after", "v")
	seesAll(t, client, members[1])
}

// seesAll checks that Newest is not below what another client just wrote.
func seesAll(t *testing.T, client *clientv3.Client, m *Member) {
	t.Helper()
	for n := range 20 {
		written := put(t, client, "/seen", fmt.Sprint(n))
		newest, err := m.Newest(t.Context())
		if err != nil || newest < written {
			t.Fatalf("the newest is %d (%v), and %d was written", newest, err, written)
		}
	}
}

// TestOneAloneIsAskedAlone checks that the newest revision of a single voter does not depend on
// anybody else.
func TestOneAloneIsAskedAlone(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	cfg, pair := newConfig(t, ca, "s1")
	m := start(t, cfg)
	if !m.alone() {
		t.Error("it is alone, and does not know")
	}
	client, err := Dial(t.Context(), []string{"https://" + cfg.ClientAddr}, pair)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	seesAll(t, client, m)
}

// put writes, however long the members take to agree on a leader, or the client to see that a
// member is gone.
func put(t *testing.T, client *clientv3.Client, key, value string) (revision int64) {
	t.Helper()
	testkit.Eventually(t, 15*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		answer, err := client.Put(ctx, key, value)
		if err == nil {
			revision = answer.Header.Revision
		}
		return err
	})
	return revision
}

// The certificate in the member's files is replaced. New connections are shown the new one, and a
// client that was there before goes on.
func TestARenewedCertificateIsShownWithoutARestart(t *testing.T) {
	ca, _ := certs.New("test")
	cfg, pair := newConfig(t, ca, "s1")
	start(t, cfg)
	before, err := Dial(t.Context(), []string{"https://" + cfg.ClientAddr}, pair)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { before.Close() })
	put(t, before, "/before", "v")
	old := shown(t, cfg, pair)
	next, err := ca.Issue(certs.Subject{CommonName: "s1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Write(cfg.CertDir); err != nil {
		t.Fatal(err)
	}
	leaf, err := next.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(t, cfg, pair); got != leaf.SerialNumber.String() || got == old {
		t.Errorf("shows %s, before the renewal %s, want %s", got, old, leaf.SerialNumber)
	}
	if _, err := before.Put(t.Context(), "/after", "v"); err != nil {
		t.Errorf("the client of before: %v", err)
	}
}

// shown returns the serial number of the certificate that a member shows.
func shown(t *testing.T, cfg Config, pair certs.Pair) string {
	t.Helper()
	config, err := pair.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", cfg.ClientAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// One that joins may ask a member that does not know yet who was added.
func TestAJoinWaitsUntilItIsKnown(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	first, _ := newConfig(t, ca, "s1")
	m := start(t, first)
	cfg, _ := newConfig(t, ca, "s2")
	cfg.Peers, cfg.Join = "s1=https://"+first.PeerAddr+",s2=https://"+cfg.PeerAddr, true
	conf, err := cfg.embed()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := launch(t.Context(), conf); !isBehind(err) {
		t.Fatalf("before it is added: %v", err)
	}
	joined := make(chan error, 1)
	go func() {
		second, err := Start(t.Context(), cfg)
		if err == nil {
			t.Cleanup(second.Close)
		}
		joined <- err
	}()
	if peers, err := Add(t.Context(), m.Client, cfg.Name, cfg.PeerAddr); err != nil || len(peers) != len(cfg.Peers) { // in any order
		t.Errorf("added %q: %v", peers, err)
	}
	if err := <-joined; err != nil {
		t.Error(err)
	}
}
