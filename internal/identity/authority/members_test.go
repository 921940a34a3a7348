package authority

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/state"
	"howdah/internal/testkit/hometest"
)

// All control planes have the same authority of members, whoever made it. The home's own authority
// does not vouch for it.
func TestTheAuthorityOfMembers(t *testing.T) {
	h := hometest.New(t)
	seal, err := h.SealKey()
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan *certs.CA, 4)
	for range cap(made) {
		go func() {
			ca, err := Members(t.Context(), h.Store, seal, time.Now())
			if err != nil {
				t.Error(err)
			}
			made <- ca
		}()
	}
	first := <-made
	for range cap(made) - 1 {
		if other := <-made; first == nil || other == nil || !bytes.Equal(other.CertPEM, first.CertPEM) {
			t.Fatal("two authorities")
		}
	}
	pair, err := first.Issue(certs.Subject{CommonName: "member:db-A.m1"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pair.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	homes := x509.NewCertPool()
	homes.AddCert(h.CA.Cert)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: homes, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("the home's authority vouches for a member")
	}
	record, err := state.Get[Record](t.Context(), h.Store, state.MembersAuthority)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(record.Value.Sealed, []byte("PRIVATE KEY")) {
		t.Error("its key is not sealed")
	}
	forged := record.Value
	forged.Cert = h.CA.CertPEM
	if _, err := forged.openMembers(seal); err == nil {
		t.Error("its key opens for another certificate")
	}
}
