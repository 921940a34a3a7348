package pgbackrest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/backup/conformance"
	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/pgtest"
)

// installed returns the preferred program, and the oldest one that works.
func installed(t *testing.T) []Engine {
	t.Helper()
	preferred, err := Find()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	var oldest Engine
	for _, prefix := range postgres.Prefixes() {
		if oldest, err = At(filepath.Join(prefix, "test-pgbackrest-"+Oldest.String(), "usr/bin/pgbackrest")); err == nil {
			break
		}
	}
	if err != nil {
		testkit.Missing(t, "pgBackRest "+Oldest.String()+": run scripts/install --test")
	}
	if preferred.Version == oldest.Version {
		testkit.Missing(t, "pgBackRest "+Preferred.String()+": run scripts/install")
	}
	return []Engine{preferred, oldest}
}

// The program of Debian 12 works, with a directory, too.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Config{Engine: installed(t)[1], Open: directory})
}

// directory makes a repository without a server.
func directory(t testing.TB, s *pgtest.Server, name, database string) conformance.Repository {
	t.Helper()
	root := filepath.Join(hometest.Dir(t), name)
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Give(root)
	return conformance.Repository{
		Access: backup.Access{Name: name, Path: filepath.Join(root, database), Passphrase: "a passphrase of " + name},
		Remove: remover(root),
		Away:   mover(root),
	}
}

// remover removes files by a part of their names.
func remover(root string) func(t testing.TB, part string) int {
	return func(t testing.TB, part string) (removed int) {
		t.Helper()
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(entry.Name(), part) {
				return err
			}
			removed++
			return os.Remove(path)
		})
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
}

// mover takes a directory away, and puts it back. Nothing can be made in its place.
func mover(root string) func(t testing.TB) func() {
	return func(t testing.TB) func() {
		t.Helper()
		if err := os.Rename(root, root+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.Remove(root); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(root+".away", root); err != nil {
				t.Fatal(err)
			}
		}
	}
}
