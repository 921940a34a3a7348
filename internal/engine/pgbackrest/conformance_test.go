package pgbackrest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/backup/conformance"
	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
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
	depth.Deep(t)
	t.Parallel()
	conformance.Run(t, conformance.Config{Engine: installed(t)[1], Open: directory})
}

func TestDamage(t *testing.T) {
	t.Parallel()
	for _, engine := range depth.Some(t, 1, installed(t)) {
		t.Run(engine.Version.String(), func(t *testing.T) {
			t.Parallel()
			conformance.RunDamage(t, conformance.Config{Engine: engine, Open: directory})
		})
	}
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
		Spoil:  spoiler(root),
		Away:   mover(root),
	}
}

// spoiler changes files, and puts them back.
func spoiler(root string) func(testing.TB, func(string) bool, func([]byte) []byte) ([]string, func()) {
	return func(t testing.TB, match func(path string) bool, change func([]byte) []byte) (paths []string, undo func()) {
		t.Helper()
		before := map[string][]byte{}
		put := func(path string, content []byte) error {
			if content == nil {
				return os.Remove(path)
			}
			return os.WriteFile(path, content, 0o600) // as it is: the file keeps its owner
		}
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || !match(strings.TrimPrefix(path, root+"/")) {
				return err
			}
			if before[path], err = os.ReadFile(path); err != nil {
				return err
			}
			paths = append(paths, strings.TrimPrefix(path, root+"/"))
			return put(path, change(bytes.Clone(before[path])))
		})
		if err != nil {
			t.Fatal(err)
		}
		return paths, func() {
			for path, content := range before {
				info, err := os.Stat(filepath.Dir(path))
				if err == nil {
					err = put(path, content)
				}
				if err == nil { // one that was removed is made anew
					of := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // on Linux it is
					err = os.Chown(path, int(of.Uid), int(of.Gid))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
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
