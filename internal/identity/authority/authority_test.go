package authority

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/model/kind"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/hometest"
)

var now = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func TestGet(t *testing.T) {
	h := hometest.New(t)
	seal, err := h.SealKey()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(h.CA, seal, "rds-ca-ecc384-g1", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Store.Commit(t.Context(), state.Put(state.Authority(r.ID), r)); err != nil {
		t.Fatal(err)
	}
	get := func(name string) (*certs.CA, error) { return Get(context.Background(), h.Store, h.CA, h.SealKey, name) }
	for _, own := range []string{"", spec.HomeAuthority} {
		if ca, err := get(own); err != nil || ca != h.CA {
			t.Errorf("%q is not the home's: %v", own, err)
		}
	}
	if _, err := get("rds-ca-ecc384-g2"); !errors.Is(err, ErrUnknown) {
		t.Errorf("one that there is not: %v", err)
	}
	ca, err := get("rds-ca-ecc384-g1")
	if err != nil {
		t.Fatal(err)
	}
	csr, _, err := certs.NewRequest(kind.EC384)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Sign(csr, certs.Subject{CommonName: "x"})
	if err != nil || !(certs.Pair{CertPEM: cert}).By("rds-ca-ecc384-g1") {
		t.Errorf("it signs as another: %v", err)
	}
	forged := r
	forged.Cross = r.Cert
	if _, err := forged.Open(seal); err == nil {
		t.Error("it opens with another cross certificate")
	}
	if _, err := r.Open([]byte("short")); err == nil {
		t.Error("it opens with a key that is none")
	}
}

func TestNewRefusesNames(t *testing.T) {
	h := hometest.New(t)
	for _, name := range []string{"", "howdah-ca", "howdah-ca-g1", "rds-ca-2019", "rds-ca-rsa2048"} {
		if _, err := New(h.CA, make([]byte, 32), name, now); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestBundleIsInTheOrderInWhichTheyWereMade(t *testing.T) {
	home := []byte("home\n")
	all := []Record{
		{ID: "b", Cert: []byte("second\n"), Created: now}, {ID: "c", Cert: []byte("third\n"), Created: now.Add(time.Hour)}, {ID: "a", Cert: []byte("first\n"), Created: now},
	}
	if got := Bundle(home, all); !bytes.Equal(got, []byte("home\nfirst\nsecond\nthird\n")) {
		t.Errorf("%q", got)
	}
	if string(home) != "home\n" || all[0].ID != "b" {
		t.Error("what was given was changed")
	}
}
