package certs

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/model/kind"
	"howdah/internal/testkit/patience"
)

func newCATest(t *testing.T) *CA {
	t.Helper()
	ca, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func loopback(name string) Subject {
	return Subject{CommonName: name, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

func TestAuthoritySurvivesItsFiles(t *testing.T) {
	ca := newCATest(t)
	key, err := ca.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseCA(ca.CertPEM, key)
	if err != nil {
		t.Fatal(err)
	}
	if Fingerprint(again.Cert) != Fingerprint(ca.Cert) {
		t.Error("the fingerprint changed")
	}
	pair, err := again.Issue(loopback("x"))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pair.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	if err := leaf.CheckSignatureFrom(ca.Cert); err != nil {
		t.Errorf("a certificate of the reread authority: %v", err)
	}
}

func TestSignIgnoresTheRequestsSubject(t *testing.T) {
	ca := newCATest(t)
	csr, key, err := NewRequest(kind.EC256)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Sign(csr, loopback("agent:a"))
	if err != nil {
		t.Fatal(err)
	}
	pair := Pair{CertPEM: cert, KeyPEM: key, CAPEM: ca.CertPEM}
	leaf, err := pair.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	if leaf.Subject.CommonName != "agent:a" {
		t.Errorf("common name %q", leaf.Subject.CommonName)
	}
	if _, err := pair.ClientTLS(); err != nil {
		t.Errorf("key and certificate do not fit: %v", err)
	}
}

func TestSignRefusesGarbage(t *testing.T) {
	ca := newCATest(t)
	csr, _, err := NewRequest(kind.EC256)
	if err != nil {
		t.Fatal(err)
	}
	broken := append([]byte(nil), csr...)
	broken[len(broken)/2] ^= 1
	for name, in := range map[string][]byte{"empty": nil, "text": []byte("hello"), "flipped bit": broken} {
		if _, err := ca.Sign(in, loopback("x")); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}

func TestWriteLoadAndModes(t *testing.T) {
	dir := t.TempDir()
	pair, err := newCATest(t).Issue(loopback("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("key file has mode %o", info.Mode().Perm())
	}
	got, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.KeyPEM) != string(pair.KeyPEM) || string(got.CertPEM) != string(pair.CertPEM) {
		t.Error("read something else than was written")
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 3 {
		t.Errorf("%d files in the directory, want 3", len(entries))
	}
}

func TestFresh(t *testing.T) {
	subject := loopback("x")
	pair, err := newCATest(t).Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	more := Subject{CommonName: "x", IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 8, 1)}}
	now := time.Now()
	cases := []struct {
		name    string
		subject Subject
		now     time.Time
		want    bool
	}{
		{"new", subject, now, true},
		{"near its end", subject, now.Add(300 * 24 * time.Hour), false},
		{"an address more", more, now, false},
		{"another name", loopback("y"), now, false},
	}
	for _, c := range cases {
		if got := pair.Fresh(c.subject, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func startServer(t *testing.T, pair Pair) *httptest.Server {
	t.Helper()
	config, err := pair.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, Caller(r.TLS))
	}))
	server.TLS = config
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func get(config *tls.Config, url string) (string, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: patience.For(5 * time.Second)}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestMutualTLS(t *testing.T) {
	ca := newCATest(t)
	serverPair, err := ca.Issue(loopback("server"))
	if err != nil {
		t.Fatal(err)
	}
	server := startServer(t, serverPair)
	clientPair, err := ca.Issue(Subject{CommonName: "agent:a"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientPair.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(config, server.URL); err != nil || got != "agent:a" {
		t.Errorf("our client: caller %q, %v", got, err)
	}
	strangerPair, err := newCATest(t).Issue(Subject{CommonName: "agent:a"})
	if err != nil {
		t.Fatal(err)
	}
	strangerPair.CAPEM = ca.CertPEM
	stranger, err := strangerPair.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(stranger, server.URL); err == nil {
		t.Errorf("a client of another authority was let in as %q", got)
	}
}

func TestPinnedTLS(t *testing.T) {
	ca, other := newCATest(t), newCATest(t)
	pair, err := ca.Issue(loopback("server"))
	if err != nil {
		t.Fatal(err)
	}
	server := startServer(t, pair)
	if _, err := get(PinnedTLS(Fingerprint(ca.Cert)), server.URL); err != nil {
		t.Errorf("with the right fingerprint: %v", err)
	}
	if _, err := get(PinnedTLS(Fingerprint(other.Cert)), server.URL); !errors.Is(err, ErrNotOurs) {
		t.Errorf("with another fingerprint: %v, want ErrNotOurs", err)
	}
}

// A machine in the middle may append the true authority to a chain of its own.
func TestPinnedTLSRefusesABorrowedAuthority(t *testing.T) {
	ca, other := newCATest(t), newCATest(t)
	pair, err := other.Issue(loopback("server"))
	if err != nil {
		t.Fatal(err)
	}
	pair.CertPEM = append(pair.CertPEM, ca.CertPEM...)
	server := startServer(t, pair)
	if _, err := get(PinnedTLS(Fingerprint(ca.Cert)), server.URL); err == nil {
		t.Error("trusted a leaf that the pinned authority did not sign")
	}
}

func TestNamesOnly(t *testing.T) {
	ca := newCATest(t)
	subject := loopback("x")
	subject.DNSNames = []string{"a.test", "b.test"}
	pair, err := ca.Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		names []string
		want  bool
	}{
		"its own": {subject.DNSNames, true}, "more": {[]string{"b.test", "a.test", "c.test"}, true}, "fewer": {[]string{"a.test"}, false}, "none": {nil, false},
	} {
		if got := pair.NamesOnly(c.names); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (Pair{}).NamesOnly(nil) {
		t.Error("no certificate has the right names")
	}
}
