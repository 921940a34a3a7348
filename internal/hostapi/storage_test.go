package hostapi

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"howdah/internal/fscrypt"
	"howdah/internal/kms"
	"howdah/internal/member"
	"howdah/internal/spec"
	"howdah/internal/state"
)

// Only the host that is to run a member gets the member's key.
func TestStorageKeysAreForTheHostOfTheMember(t *testing.T) {
	w := newWorld(t)
	seal, err := w.Home.SealKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := kms.New(seal, spec.Scope{Account: "1", Region: "us-east-1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	storage, err := key.NewStorage(seal, "d1")
	if err != nil {
		t.Fatal(err)
	}
	keyAt := state.KMSKey("1", "us-east-1", key.ID)
	ops := []state.Op{state.Put(keyAt, key), state.Put(state.StorageKey("d1"), storage)}
	for name, a := range map[string]member.Assignment{
		"m1": {Want: member.Running, Encrypted: true}, "m2": {Want: member.Running},
		"m3": {Want: member.Absent, Encrypted: true}, "m4": {Want: member.Stopped, Encrypted: true},
	} {
		a.ID, a.Scope, a.Name = "d1."+name, "d1", name
		ops = append(ops, state.Put(state.Assign("db1", a.ID), a))
	}
	if _, err := w.Store.Commit(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
	w.server.Storage = func(ctx context.Context, database, member string) ([]byte, error) {
		return kms.Open(ctx, w.Store, w.Home.SealKey, database, member)
	}
	owner := w.client(t, w.Issue(t, "agent:db1"))
	got, err := owner.StorageKey(t.Context(), "d1.m1")
	if err != nil || len(got) != fscrypt.KeySize {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if want, err := storage.ForMember(seal, key, "d1.m1"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another key: %v", err)
	}
	for _, c := range []struct{ name, caller, member string }{
		{"another host", "agent:db2", "d1.m1"},
		{"an edge of that name", "edge:db1", "d1.m1"},
		{"the control plane", "howdah-serve", "d1.m1"},
		{"a member that is not encrypted", "agent:db1", "d1.m2"},
		{"a member that is deleted", "agent:db1", "d1.m3"},
		{"a member that is stopped", "agent:db1", "d1.m4"},
		{"a member that is nowhere", "agent:db1", "d1.m9"},
		{"no member", "agent:db1", ""},
		{"a path", "agent:db2", "../db1/d1.m1"},
	} {
		if key, err := w.client(t, w.Issue(t, c.caller)).StorageKey(t.Context(), c.member); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %d bytes, %v", c.name, len(key), err)
		}
	}
	key.Disabled = true
	if _, err := w.Store.Commit(t.Context(), state.Put(keyAt, key)); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.StorageKey(t.Context(), "d1.m1"); err == nil {
		t.Error("with a KMS key that is disabled")
	}
}
