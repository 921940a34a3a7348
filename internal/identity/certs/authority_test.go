package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/kind"
	"howdah/internal/model/spec"
)

// signed returns a certificate of an authority for a server on loopback.
func signed(t *testing.T, ca, root *CA, wanted string) Pair {
	t.Helper()
	csr, key, err := NewRequest(wanted)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Sign(csr, loopback("agent:a"))
	if err != nil {
		t.Fatal(err)
	}
	return Pair{CertPEM: cert, KeyPEM: key, CAPEM: root.CertPEM}
}

// trusts returns nil if a client with this bundle connects to a server with this pair.
func trusts(t *testing.T, server Pair, bundle ...[]byte) error {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bytes.Join(bundle, nil))
	cert, err := tls.X509KeyPair(server.CertPEM, server.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	between := x509.NewCertPool()
	for _, der := range cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		between.AddCert(c)
	}
	_, err = cert.Leaf.Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, DNSName: "127.0.0.1"})
	return err
}

func TestAuthoritiesAreTrustedByBundlesOfAnyAge(t *testing.T) {
	home := newCATest(t)
	stranger := newCATest(t)
	for _, line := range spec.AuthorityLines {
		if line.Key == kind.RSA4096 {
			continue // takes seconds, and is made like the other
		}
		id := line.Authority(2)
		ca, cross, err := home.NewAuthority(id, line.Key)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ca.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		if ca, err = ParseAuthority(ca.CertPEM, cross, key); err != nil {
			t.Fatal(err)
		}
		pair := signed(t, ca, home, line.ServerKey)
		for name, bundle := range map[string][][]byte{
			"older": {home.CertPEM}, "newer": {home.CertPEM, ca.CertPEM}, "only the new one": {ca.CertPEM},
		} {
			if err := trusts(t, pair, bundle...); err != nil {
				t.Errorf("%s, the bundle is %s: %v", id, name, err)
			}
		}
		if trusts(t, pair, stranger.CertPEM) == nil {
			t.Errorf("%s: a stranger's bundle is good", id)
		}
		if !pair.By(id) || pair.By("") {
			t.Errorf("%s: the certificate does not say by whom it is", id)
		}
		leaf, err := pair.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		if leaf.NotAfter.After(home.Cert.NotAfter) {
			t.Errorf("%s: the certificate outlives its chain", id)
		}
	}
}

func TestKindsOfKeys(t *testing.T) {
	home := newCATest(t)
	for wanted, fits := range map[string]func(any) bool{
		kind.EC256:   func(k any) bool { e, ok := k.(*ecdsa.PublicKey); return ok && e.Curve.Params().BitSize == 256 },
		kind.EC384:   func(k any) bool { e, ok := k.(*ecdsa.PublicKey); return ok && e.Curve.Params().BitSize == 384 },
		kind.RSA2048: func(k any) bool { r, ok := k.(*rsa.PublicKey); return ok && r.N.BitLen() == 2048 },
	} {
		pair := signed(t, home, home, wanted)
		leaf, err := pair.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		if !fits(leaf.PublicKey) {
			t.Errorf("%q: a key of %T", wanted, leaf.PublicKey)
		}
		if encipher := leaf.KeyUsage&x509.KeyUsageKeyEncipherment != 0; encipher != (wanted == kind.RSA2048) {
			t.Errorf("%q: for enciphering keys: %t", wanted, encipher)
		}
		if !pair.By("") {
			t.Errorf("%q: not by the home", wanted)
		}
	}
	if _, _, err := NewRequest("dsa1024"); !errors.Is(err, errKind) {
		t.Errorf("a key of a kind that nobody knows: %v", err)
	}
}

// The authority of an older home may not sign others, and says so. Every client would refuse a
// chain through it.
func TestOlderHomesHaveNoOtherAuthorities(t *testing.T) {
	home := newCATest(t)
	home.Cert.MaxPathLen, home.Cert.MaxPathLenZero = 0, true
	if _, _, err := home.NewAuthority("howdah-ca-g2", kind.EC256); !errors.Is(err, ErrNoSuccessor) {
		t.Errorf("%v", err)
	}
}

func TestAnAuthorityOfADatabaseSignsNoOther(t *testing.T) {
	home := newCATest(t)
	ca, _, err := home.NewAuthority("howdah-ca-g2", kind.EC256)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ca.NewAuthority("howdah-ca-g3", kind.EC256); !errors.Is(err, ErrNoSuccessor) {
		t.Errorf("%v", err)
	}
}

func TestNoCertificateOutlivesItsAuthority(t *testing.T) {
	ca := newCATest(t)
	ca.until = time.Now().Add(time.Hour)
	leaf, err := signed(t, ca, ca, kind.EC256).Leaf()
	if err != nil {
		t.Fatal(err)
	}
	if leaf.NotAfter.After(ca.until) {
		t.Errorf("until %s, the authority %s", leaf.NotAfter, ca.until)
	}
}

func TestParseAuthorityRefuses(t *testing.T) {
	home := newCATest(t)
	ca, cross, err := home.NewAuthority("howdah-ca-g2", kind.EC256)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ca.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	strange := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})
	for name, texts := range map[string][3][]byte{
		"no certificate": {nil, cross, key}, "no cross certificate": {ca.CertPEM, nil, key}, "no key": {ca.CertPEM, cross, nil},
		"a key that is none": {ca.CertPEM, cross, strange},
	} {
		if _, err := ParseAuthority(texts[0], texts[1], texts[2]); err == nil || !strings.Contains(err.Error(), "pars") && !strings.Contains(err.Error(), "cross") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
