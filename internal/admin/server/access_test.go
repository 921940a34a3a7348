package server

import (
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/identity/access"
	"howdah/internal/identity/home"
	"howdah/internal/state"
)

// newServer returns a server that has all verbs, and nothing to do them on. It also returns the
// account of its home.
func newServer(t *testing.T) (*Server, string) {
	t.Helper()
	h, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Home: h, State: &state.Client{Store: &state.Store{}}, Looks: &look.Source{}}), h.Account
}

func TestVerbsOfLimitedKeys(t *testing.T) {
	s, home := newServer(t)
	may := func(name string, c front.Call) string {
		if err := s.verbs[name].May(c, home); err != nil {
			return "no"
		}
		return "yes"
	}
	keyOf := func(account string, k access.Key) front.Call {
		policies, err := k.Policies()
		if err != nil {
			t.Fatal(err)
		}
		c := front.Call{Who: front.Principal{Account: account, Policies: policies}, Now: time.Now()}
		c.Account = account
		return c
	}
	policy := access.Key{Policy: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"howdah:Drain","Resource":"*"}}`}
	for _, test := range []struct {
		name, verb string
		c          front.Call
		want       string
	}{
		{"a key of the home's account", admin.VerbForgetHost, keyOf(home, access.Key{}), "yes"},
		{"a key of another account", admin.VerbStatus, keyOf("000000000009", access.Key{}), "no"},
		{"its own databases", admin.VerbDatabase, keyOf("000000000009", access.Key{}), "yes"},
		{"a key that may look, looking", admin.VerbStatus, keyOf(home, access.Key{ReadOnly: true}), "yes"},
		{"a key that may look, draining", admin.VerbDrain, keyOf(home, access.Key{ReadOnly: true}), "no"},
		{"a key that may look, at keys", admin.VerbKeyList, keyOf(home, access.Key{ReadOnly: true}), "no"},
		{"a key that may look, at operations", admin.VerbOperations, keyOf(home, access.Key{ReadOnly: true}), "yes"},
		{"a key that may look, cancelling one", admin.VerbOperationCancel, keyOf(home, access.Key{ReadOnly: true}), "no"},
		{"a key that may look, at backups", admin.VerbBackups, keyOf(home, access.Key{ReadOnly: true}), "yes"},
		{"a key that may look, at those of one database", admin.VerbBackupShow, keyOf(home, access.Key{ReadOnly: true}), "yes"},
		{"a key that may look, at drills", admin.VerbDrills, keyOf(home, access.Key{ReadOnly: true}), "yes"},
		{"a key that may look, at snapshots", admin.VerbSnapshots, keyOf(home, access.Key{ReadOnly: true}), "yes"},
		{"a key that may look, copying a snapshot", admin.VerbSnapshotCopy, keyOf(home, access.Key{ReadOnly: true}), "no"},
		{"a key that may look, downloading a snapshot", admin.VerbSnapshotDownload, keyOf(home, access.Key{ReadOnly: true}), "no"},
		{"a key that may look, fetching one", admin.VerbSnapshotFetch, keyOf(home, access.Key{ReadOnly: true}), "no"},
		{"a key of another account, downloading a snapshot", admin.VerbSnapshotDownload, keyOf("000000000009", access.Key{}), "no"},
		{"a key of another account, fetching one", admin.VerbSnapshotFetch, keyOf("000000000009", access.Key{}), "no"},
		{"a key that may look, making a backup", admin.VerbBackupNow, keyOf(home, access.Key{ReadOnly: true}), "no"},
		{"a key that may look, trying one", admin.VerbBackupDrill, keyOf(home, access.Key{ReadOnly: true}), "no"},
		{"a key of another account, at backups", admin.VerbBackups, keyOf("000000000009", access.Key{}), "no"},
		{"a key of another account, at operations", admin.VerbOperations, keyOf("000000000009", access.Key{}), "no"},
		{"a key of another account, cancelling one", admin.VerbOperationCancel, keyOf("000000000009", access.Key{}), "no"},
		{"a policy with the verb", admin.VerbDrain, keyOf(home, policy), "yes"},
		{"a policy without the verb", admin.VerbUndrain, keyOf(home, policy), "no"},
		{"a key of the home's file, of another account", admin.VerbWipe, front.Call{Who: front.Principal{OfHome: true}}, "yes"},
	} {
		test.c.Action = "howdah:" + verb.Action(test.verb)
		if got := may(test.verb, test.c); got != test.want {
			t.Errorf("%s, %s: %s, want %s", test.name, test.c.Action, got, test.want)
		}
	}
}

// A caller that may only do some things must not be able to make a key that may do all.
func TestALimitedKeyMakesNoKeys(t *testing.T) {
	s, home := newServer(t)
	policies, err := access.Key{Policy: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`}.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{admin.VerbKeyCreate, admin.VerbKeyDelete, admin.VerbKeyList} {
		c := front.Call{Now: time.Now()}
		c.Account, c.Action = home, "howdah:"+verb.Action(name)
		if err := s.verbs[name].May(c, home); err != nil {
			t.Errorf("%s of the home's own key: %v", name, err)
		}
		c.Who.OfHome, c.Who.Policies = false, policies
		if err := s.verbs[name].May(c, home); (err != nil) != (name != admin.VerbKeyList) {
			t.Errorf("%s of a limited key: %v", name, err)
		}
	}
}
