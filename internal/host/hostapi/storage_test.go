package hostapi

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"howdah/internal/identity/kms"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/system/fscrypt"
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

// While a database waits to be taken over, a host gets the keys of the copies that it has told of,
// and no others. The members may be ones that are to stay stopped, or that the home does not know.
func TestStorageKeysForALook(t *testing.T) {
	w := newWorld(t)
	asked := ""
	w.server.Storage = func(_ context.Context, database, member string) ([]byte, error) {
		asked = database + " " + member
		return []byte("key"), nil
	}
	w.server.Placed = func(_ context.Context, database, name string) (string, error) {
		return map[string]string{"d1.m1": "db1", "d1.m2": "db2"}[database+"."+name], nil
	}
	put := func(ops ...state.Op) {
		t.Helper()
		if _, err := w.Store.Commit(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	told := func(host, id, home string) state.Op {
		return state.Put(state.HeldCopy(host, id), regain.Copy{Home: home, Host: host, Assignment: member.Assignment{ID: id}})
	}
	db1 := w.client(t, w.Issue(t, "agent:db1"))
	opens := func(id string, want bool, why string) {
		t.Helper()
		asked = ""
		_, err := db1.StorageKey(t.Context(), id)
		if want && (err != nil || asked != "d1 "+id) || !want && (!errors.Is(err, ErrRefused) || asked != "") {
			t.Errorf("%s, %s: %q, %v", id, why, asked, err)
		}
	}
	put(state.Put(state.Assign("db1", "d1.m1"), member.Assignment{ID: "d1.m1", Scope: "d1", Name: "m1", Want: member.Stopped, Encrypted: true}),
		told("db1", "d1.m1", "r1"), told("db1", "d1.m2", "r1"), told("db1", "d1.m7", "r1"), told("db1", "d1.m8", "r1"), told("db1", "d2.m1", "r1"),
		told("db1", "d1.m9", "r0"), told("db2", "d1.m8", "r1"), told("db2", "d1.m7", "r0"))
	opens("d1.m1", false, "in a home that was never restored")
	put(state.Put(state.Restored(), regain.Home{ID: "r1"}))
	opens("d1.m1", false, "after it was taken over")
	put(state.Put(state.Hold("d1"), regain.Hold{Database: "d1"}))
	opens("d1.m1", true, "stopped")
	opens("d1.m7", true, "made after the backup")
	opens("d1.m2", false, "which is at another host")
	opens("d1.m8", false, "of which another host has told, too")
	opens("d1.m9", false, "told of to an earlier home")
	opens("d1.m5", false, "of which it has not told")
	opens("d2.m1", false, "of a database that is not held")
	opens("../db1/d1.m1", false, "a path")
	if _, err := w.client(t, w.Issue(t, "edge:db1")).StorageKey(t.Context(), "d1.m1"); !errors.Is(err, ErrRefused) {
		t.Errorf("an edge: %v", err)
	}
	put(state.Put(state.HeldCopy("db1", "d1.m7"), regain.Copy{Home: "r1", Assignment: member.Assignment{ID: "d1.m1"}}))
	opens("d1.m7", false, "told of as another")
}
