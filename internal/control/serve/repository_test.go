package serve

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/repository/place"
	"howdah/internal/repository/store"
	"howdah/internal/state"
	"howdah/internal/testkit/hometest"
)

// A home on one machine has a repository, whenever what makes it dies. One that is there already is
// left as it is.
func TestTheDefaultRepositoryIsMadeOnce(t *testing.T) {
	h := hometest.New(t)
	p := newPlaces(Config{Home: h.Home, Address: h.Address(0, 1), Log: slog.New(slog.DiscardHandler)}, nil)
	lease := state.Put("/howdah/test/leads", true)
	dir := h.RepositoryDir()
	opened := func() store.Store {
		t.Helper()
		s, err := store.OpenDirectory(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// The control plane died after the directory, and after the marker.
	for _, died := range []func(){
		func() {},
		func() {
			err := place.Found(t.Context(), opened(), store.Marker{ID: "repo-died", Home: h.ID}, func(string) bool { return false })
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		died()
		for range 2 {
			if err := p.makeDefault(t.Context(), h.Store, lease); err != nil {
				t.Fatal(err)
			}
		}
		r, err := state.Get[backup.Repository](t.Context(), h.Store, state.Repository("default"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := store.ReadMarker(t.Context(), opened())
		if err != nil || m.ID != r.Value.ID || m.ID == "repo-died" || !r.Value.Default || r.Value.Path != dir {
			t.Errorf("%+v, %+v, %v", m, r.Value, err)
		}
		if _, err := p.look(t.Context(), r.Value); err != nil {
			t.Error(err)
		}
		if _, err := repository.Open(t.Context(), h.Store, h.SealKey, "default", "db-1"); err != nil {
			t.Error(err)
		}
		if _, err := h.Store.Commit(t.Context(), state.Delete(state.Repository("default"))); err != nil {
			t.Fatal(err)
		}
	}
	// The record is lost, and there are backups: nobody but an operator with the key can take them.
	if err := os.WriteFile(filepath.Join(dir, "backup.info"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.makeDefault(t.Context(), h.Store, lease); !errors.Is(err, place.ErrTaken) || !strings.Contains(err.Error(), "--adopt") {
		t.Errorf("with backups of which nothing is known: %v", err)
	}
}

// Nobody makes a repository of a directory of one machine for a home of several.
func TestAHomeOfSeveralMachinesHasNoRepository(t *testing.T) {
	h := hometest.New(t)
	p := newPlaces(Config{Home: h.Home, Address: "10.0.0.1", Log: slog.New(slog.DiscardHandler)}, nil)
	if err := p.ensure(t.Context(), h.Store, state.Put("/howdah/test/leads", true)); err != nil {
		t.Error(err)
	}
	if all, err := state.List[backup.Repository](t.Context(), h.Store, state.RepositoryRoot); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if !strings.Contains(p.none(), "several machines") {
		t.Errorf("%q", p.none())
	}
	if _, err := os.Stat(h.RepositoryDir()); !os.IsNotExist(err) {
		t.Errorf("there is a directory: %v", err)
	}
}
