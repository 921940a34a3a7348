package kms

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/spec"
	"howdah/internal/system/fscrypt"
)

var (
	scope = spec.Scope{Account: "000000000001", Region: "us-east-1"}
	seal  = bytes.Repeat([]byte{5}, 32)
	now   = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
)

func made(t *testing.T) (Key, Storage) {
	t.Helper()
	k, err := New(seal, scope, now)
	if err != nil {
		t.Fatal(err)
	}
	s, err := k.NewStorage(seal, "db-1")
	if err != nil {
		t.Fatal(err)
	}
	return k, s
}

func TestEachMemberHasAKeyOfItsOwnThatStays(t *testing.T) {
	k, s := made(t)
	text, err := json.Marshal([]any{k, s})
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.ForMember(seal, k, "db-1.m1")
	if err != nil || len(one) != fscrypt.KeySize {
		t.Fatalf("%d bytes, %v", len(one), err)
	}
	again, err := s.ForMember(seal, k, "db-1.m1")
	if err != nil || !bytes.Equal(one, again) {
		t.Errorf("another key at the second time: %v", err)
	}
	other, err := s.ForMember(seal, k, "db-1.m2")
	if err != nil || bytes.Equal(one, other) {
		t.Errorf("two members have one key: %v", err)
	}
	own, _ := unwrap(must(k.open(seal)), s.Wrapped, s.bound())
	for _, secret := range [][]byte{one, own, must(k.open(seal)), seal} {
		encoded, _ := json.Marshal(secret)
		if bytes.Contains(text, bytes.Trim(encoded, `"`)) || bytes.Contains(text, secret) {
			t.Error("a key can be read in the state")
		}
	}
}

func must(b []byte, _ error) []byte { return b }

func TestWhatOpensNothing(t *testing.T) {
	k, s := made(t)
	elsewhere, moved := made(t)
	moved.Database = "db-2"
	renamed := k
	renamed.ID = elsewhere.ID
	for name, open := range map[string]func() ([]byte, error){
		"another home":         func() ([]byte, error) { return s.ForMember(bytes.Repeat([]byte{6}, 32), k, "db-1.m1") },
		"another KMS key":      func() ([]byte, error) { return s.ForMember(seal, elsewhere, "db-1.m1") },
		"of another database":  func() ([]byte, error) { return moved.ForMember(seal, elsewhere, "db-2.m1") },
		"under another's name": func() ([]byte, error) { return s.ForMember(seal, renamed, "db-1.m1") },
		"no key of a home":     func() ([]byte, error) { return s.ForMember([]byte("short"), k, "db-1.m1") },
	} {
		if key, err := open(); err == nil {
			t.Errorf("%s: %x", name, key)
		}
	}
	for name, change := range map[string]func(*Key){
		"disabled":      func(k *Key) { k.Disabled = true },
		"to be deleted": func(k *Key) { k.DeleteAt = now },
	} {
		changed := k
		change(&changed)
		if _, err := s.ForMember(seal, changed, "db-1.m1"); !errors.Is(err, ErrNotUsable) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := changed.NewStorage(seal, "db-3"); !errors.Is(err, ErrNotUsable) {
			t.Errorf("%s, for a new database: %v", name, err)
		}
	}
}

func TestParse(t *testing.T) {
	k, _ := made(t)
	other := spec.Scope{Account: "2", Region: "eu-west-1"}
	for name, want := range map[string]struct {
		scope     spec.Scope
		id, alias string
		ok        bool
	}{
		k.ID:                              {scope, k.ID, "", true},
		k.ARN():                           {scope, k.ID, "", true},
		ARN(other, k.ID):                  {other, k.ID, "", true},
		"alias/aws/rds":                   {scope, "", "alias/aws/rds", true},
		AliasARN(other, "alias/x"):        {other, "", "alias/x", true},
		"":                                {},
		"mine":                            {},
		"arn:aws:kms:us-east-1:1":         {},
		"arn:aws:kms:us-east-1:1:mine":    {},
		"arn:aws:rds:us-east-1:1:key/x":   {},
		"arn:aws:kms:us-east-1:1:key/../": {},
		strings.ToUpper(k.ID):             {},
	} {
		gotScope, id, alias, ok := Parse(name, scope)
		if ok != want.ok || ok && (gotScope != want.scope || id != want.id || alias != want.alias) {
			t.Errorf("%q: %v %q %q %v", name, gotScope, id, alias, ok)
		}
	}
}
