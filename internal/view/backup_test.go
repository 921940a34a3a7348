package view

import (
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// TestABackupThatStandbysBeginWith: the newest one that is good, in a repository to which the
// database archives. The first one of a restored database is waited for.
func TestABackupThatStandbysBeginWith(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	i := spec.Instance{
		Common: spec.Common{
			Scope: spec.Scope{Account: "111111111111", Region: "local"}, Name: "a", ResourceID: "db-a", Major: 15, BackupRetention: 1,
			Origin: &spec.Origin{Database: "db-0", Repository: "main", Label: "x"},
		},
		Class: "db.t3.micro", Storage: 20,
	}
	wants := &Wants{Records: &Records{Cache: cache}}
	made := func(repository, label string, change func(*backup.Backup)) state.Op {
		b := backup.Backup{Database: "db-a", Repository: repository, Label: label, Kind: backup.Full, Major: 15, Stop: time.Now()}
		change(&b)
		return state.Put(state.Backup("db-a", repository, label), b)
	}
	good := func(*backup.Backup) {}
	take := operation.Record{ID: "op-1", Kind: backup.Take.Name, About: operation.About{Database: "db-a"}}
	other := operation.Record{ID: "op-2", Kind: backup.Take.Name, About: operation.About{Database: "db-b"}}
	steps := []struct {
		what  string
		op    state.Op
		want  string // repository/label
		going bool
	}{
		{"no repository", state.Put(state.Instance(i.Account, i.Region, i.Name), i), "", false},
		{"no backup", state.Put(state.Repository("main"), backup.Repository{Name: "main", Default: true}), "", false},
		{"one of another database is made", state.Put(state.Operation("op-2"), other), "", false},
		{"it is made", state.Put(state.Operation("op-1"), take), "", true},
		{"elsewhere", made("other", "20261101-000000F", good), "", true},
		{"one", made("main", "20261101-000000F", good), "main/20261101-000000F", false},
		{"a damaged one", made("main", "20261102-000000F", func(b *backup.Backup) { b.Damaged = "x" }), "main/20261101-000000F", false},
	}
	for _, s := range steps {
		etcdtest.Put(t, store, cache, s.op)
		now := wants.Now()
		d := now.Database("db-a")
		if !d.Want.BackedUp {
			t.Fatalf("%s: it has automated backups", s.what)
		}
		in := now.Basis(d, plan.Layout{ID: "db-a"}, nil).Input(time.Now(), plan.Policy{})
		if got := named(in.Backup); got != s.want || in.BackingUp != s.going {
			t.Errorf("%s: %q, made %v; want %q, %v", s.what, got, in.BackingUp, s.want, s.going)
		}
	}
}

func named(c *member.Copy) string {
	if c == nil {
		return ""
	}
	return c.Repository + "/" + c.Label
}
