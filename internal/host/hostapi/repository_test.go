package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// A host gets what opens a repository only for the databases that it has work of.
func TestRepositoriesAreForHostsWithWork(t *testing.T) {
	w := newWorld(t)
	seal, err := w.Home.SealKey()
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := repository.NewSealer(seal)
	if err != nil {
		t.Fatal(err)
	}
	key := repository.NewKey()
	near := sealer.Seal(backup.Repository{Name: "near", ID: "repo-1", Kind: backup.Directory, Path: "/r"}, key, "")
	far := sealer.Seal(backup.Repository{Name: "far", ID: "repo-2", Kind: backup.S3, Endpoint: "https://s3", Bucket: "b", AccessKey: "ak"}, nil, "s3cret")
	archive := &member.Archive{Repositories: []string{"near"}}
	assign := func(id string, a member.Assignment) state.Op {
		a.ID = id
		return state.Put(state.Assign("db1", id), a)
	}
	job := func(host, name string, args any) state.Op {
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return state.Put(state.Job(host, name), member.Job{Name: name, Host: host, Kind: "k", Args: text})
	}
	type both struct {
		Database, Repository string
		Source               RepositoryRequest
	}
	if _, err := w.Store.Commit(t.Context(),
		state.Put(state.Repository("near"), near), state.Put(state.Repository("far"), far),
		assign("d1.m1", member.Assignment{Scope: "d1", Want: member.Running, Archive: archive}),
		assign("d2.m1", member.Assignment{Scope: "d2", Want: member.Absent, Archive: archive, Restore: &member.Restore{Database: "d1", Repository: "far"}}),
		assign("d3.m1", member.Assignment{Scope: "d3", Want: member.Running, Restore: &member.Restore{Database: "d4", Repository: "far"}}),
		assign("d5.m1", member.Assignment{Scope: "d5", Want: member.Stopped, Archive: archive}),
		job("db1", "o1/run", both{Database: "d6", Repository: "near"}),
		job("db1", "o2/run", both{"d7", "far", RepositoryRequest{"d11", "near"}}),
		job("db1", "o3/run", both{Database: "d10", Repository: "lost"}),
		job("db2", "o4/run", both{Database: "d8", Repository: "near"}),
		job("db3", "o5/look", both{Repository: "far"}),
		state.Put(state.Job("db3", "o6"), member.Job{Name: "o6", Host: "db3", Args: json.RawMessage(`"d1 near"`)}),
	); err != nil {
		t.Fatal(err)
	}
	w.server.Repository = func(ctx context.Context, name, database string) (member.Repository, error) {
		return repository.Open(ctx, w.Store, w.Home.SealKey, name, database)
	}
	for _, c := range []struct {
		name, caller, database, repository string
		want                               string
	}{
		{"it archives there", "agent:db1", "d1", "near", repository.Passphrase(key, "d1")},
		{"it archives elsewhere", "agent:db1", "d1", "far", refused},
		{"it is to be deleted", "agent:db1", "d2", "near", refused},
		{"it is restored from there", "agent:db1", "d4", "far", ""},
		{"it archives nowhere", "agent:db1", "d3", "near", refused},
		{"it is stopped", "agent:db1", "d5", "near", repository.Passphrase(key, "d5")},
		{"a job", "agent:db1", "d6", "near", repository.Passphrase(key, "d6")},
		{"a job that copies, from", "agent:db1", "d11", "near", repository.Passphrase(key, "d11")},
		{"a job that copies, to", "agent:db1", "d7", "far", ""},
		{"what it copies, elsewhere", "agent:db1", "d11", "far", refused},
		{"the copy, elsewhere", "agent:db1", "d7", "near", refused},
		{"a job of another host", "agent:db1", "d8", "near", refused},
		{"a job without a database", "agent:db3", "", "far", ""},
		{"a job of another repository, without a database", "agent:db3", "", "near", refused},
		{"another database than the job's", "agent:db3", "d1", "far", refused},
		{"a repository that is not", "agent:db1", "d10", "lost", refused},
		{"a member of another host", "agent:db2", "d1", "near", refused},
		{"all, in place of one database", "agent:db1", "", "near", refused},
		{"an edge of that name", "edge:db1", "d1", "near", refused},
		{"the control plane", "howdah-serve", "d1", "near", refused},
		{"a path", "agent:db1", "d1", "../near", refused},
		{"no repository", "agent:db1", "d1", "", refused},
		{"a host whose name begins so", "agent:db", "d1", "near", refused},
	} {
		got, err := w.client(t, w.Issue(t, c.caller)).Repository(t.Context(), c.database, c.repository)
		switch {
		case c.want == refused:
			if !errors.Is(err, ErrRefused) || got != (member.Repository{}) {
				t.Errorf("%s: %+v, %v", c.name, got, err)
			}
		case err != nil || got.Passphrase != c.want || got.Name != c.repository:
			t.Errorf("%s: %+v, %v", c.name, got, err)
		case c.repository == "far" && (got.Secret != "s3cret" || got.Endpoint != "https://s3" || got.AccessKey != "ak"):
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	w.server.Repository = nil
	if _, err := w.client(t, w.Issue(t, "agent:db1")).Repository(t.Context(), "d1", "near"); !errors.Is(err, ErrRefused) {
		t.Errorf("without repositories: %v", err)
	}
}

// refused stands for an answer that the control plane refuses to give.
const refused = "refused"
