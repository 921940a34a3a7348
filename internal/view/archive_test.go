package view

import (
	"slices"
	"testing"

	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// TestArchivesFollow: databases are archived to the usual repository, or to that of their backups,
// and to the one that has copies; what changes nothing of that leaves all databases as they were.
func TestArchivesFollow(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	instance := func(name, class string) spec.Instance {
		return spec.Instance{Common: spec.Common{Scope: spec.Scope{Account: "111111111111", Region: "local"}, Name: name, ResourceID: "db-" + name}, Class: class, Storage: 20}
	}
	put := func(i spec.Instance) state.Op {
		return state.Put(state.Instance(i.Account, i.Region, i.Name), i)
	}
	a, follower := instance("a", "db.t3.micro"), instance("f", "db.t3.micro")
	follower.Source = "db-a"
	records := &Records{Cache: cache}
	wants := &Wants{Records: records}
	repository := func(name string, usual bool) state.Op {
		return state.Put(state.Repository(name), backup.Repository{Name: name, Default: usual})
	}
	automated := func(first, second string) state.Op {
		return state.Put(state.Automated("db-a"), backup.Automated{Database: "db-a", Repository: first, Second: second})
	}
	etcdtest.Put(t, store, cache, put(a), put(follower))
	steps := []struct {
		what string
		op   state.Op
		want []string
	}{
		{"no repository", put(instance("b", "db.t3.micro")), nil},
		{"one", repository("main", true), []string{"main"}},
		{"what says the same", automated("main", ""), []string{"main"}},
		{"a second one that is not there yet", automated("main", "copies"), []string{"main"}},
		{"which is added", repository("copies", false), []string{"main", "copies"}},
		{"another one is usual, and its backups are here", state.Put(state.Repository("new"), backup.Repository{Name: "new", Default: true}), []string{"main", "copies"}},
		{"copies end", automated("main", ""), []string{"main"}},
		{"the record is gone", state.Delete(state.Automated("db-a")), []string{"new"}},
	}
	for _, s := range steps {
		before := wants.Now()
		etcdtest.Put(t, store, cache, s.op)
		now := wants.Now()
		var got []string
		if archive := now.Database("db-a").Want.Archive; archive != nil {
			got = archive.Repositories
			if archive.Cap != 2<<30 {
				t.Errorf("%s: %d bytes may wait, want a tenth of the storage", s.what, archive.Cap)
			}
		}
		if !slices.Equal(got, s.want) {
			t.Errorf("%s: WAL goes to %q, want %q", s.what, got, s.want)
		}
		if now.Database("db-f").Want.Archive != nil {
			t.Errorf("%s: what follows another database has no WAL of its own", s.what)
		}
		if s.what == "what says the same" && now.Database("db-a") != before.Database("db-a") {
			t.Errorf("%s: the database is made anew", s.what)
		}
		fresh, _ := Nothing(cache).After(records.Made())
		if diff := different(now, fresh); diff != "" {
			t.Errorf("%s: %s", s.what, diff)
		}
	}
}
