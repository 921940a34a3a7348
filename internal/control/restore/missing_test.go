package restore

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"howdah/internal/identity/home"
	"howdah/internal/identity/repository"
	model "howdah/internal/model/backup"
	"howdah/internal/state"
	"howdah/internal/state/backup"
	"howdah/internal/testkit/hometest"
)

// The records of repositories come back with the home, and it can open their keys. Whoever restores
// it is told which directories are not there.
func TestRepositoriesComeBackWithTheHome(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	seal, err := h.SealKey()
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := repository.NewSealer(seal)
	if err != nil {
		t.Fatal(err)
	}
	key, lost := repository.NewKey(), filepath.Join(t.TempDir(), "lost")
	put(t, h.Store,
		state.Put(state.Repository("here"), sealer.Seal(model.Repository{Name: "here", ID: "repo-1", Kind: model.Directory, Path: t.TempDir(), Created: time.Now()}, key, "")),
		state.Put(state.Repository("lost"), sealer.Seal(model.Repository{Name: "lost", ID: "repo-2", Kind: model.Directory, Path: lost}, key, "")),
		state.Put(state.Repository("far"), sealer.Seal(model.Repository{Name: "far", ID: "repo-3", Kind: model.S3, Endpoint: "https://s3"}, nil, "s3cret")),
	)
	b, err := backup.Take(t.Context(), filepath.Join(t.TempDir(), "backups"), backup.Source{Home: h.Home, Snapshot: h.Member.Snapshot, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	h.StopEtcd()
	dir := filepath.Join(hometest.Dir(t), "home")
	p, err := Run(t.Context(), config(dir, b.Path))
	if err != nil || !slices.Equal(p.Missing, []Missing{{"lost", lost}}) {
		t.Fatalf("%+v, %v", p, err)
	}
	again, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := started(t, again)
	for _, name := range []string{"here", "far"} {
		r, err := state.Get[model.Repository](t.Context(), s, state.Repository(name))
		if err != nil {
			t.Fatal(err)
		}
		access, err := repository.Open(t.Context(), s, again.SealKey, name, "db-1")
		if err != nil || access.ID != r.Value.ID {
			t.Errorf("%+v, %v", access, err)
		}
		if name == "here" && access.Passphrase != repository.Passphrase(key, "db-1") || name == "far" && access.Secret != "s3cret" {
			t.Errorf("%+v", access)
		}
	}
}
