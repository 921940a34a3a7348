package restore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"howdah/internal/engine/backup"
	modelbackup "howdah/internal/model/backup"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/sourcetest"
)

// spoil changes the middle byte of each file of the repository whose path has a part, or removes it.
// undo puts them back.
func (s source) spoil(t testing.TB, part string, remove bool) (undo func()) {
	t.Helper()
	before := map[string][]byte{}
	s.Must(filepath.WalkDir(filepath.Join(s.Dir, "backups"), func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !strings.Contains(path, part) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		before[path] = bytes.Clone(text)
		if remove {
			return os.Remove(path)
		}
		text[len(text)/2] ^= 4
		return s.User.ReplaceFile(path, text, 0o600)
	}))
	if len(before) == 0 {
		t.Fatalf("no file has %s in its path", part)
	}
	return func() {
		for path, text := range before {
			s.Must(s.User.ReplaceFile(path, text, 0o600))
		}
	}
}

// TestDamagedBackups are told of with the names of what is damaged, once and for all. What can be
// restored all the same is restored.
func TestDamagedBackups(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	engine, place := s.repository(t)
	s.Exec("CREATE TABLE public.large AS SELECT md5(n::text) AS text, random() AS other FROM generate_series(1, 60000) n")
	s.Keep("a")
	for _, operation := range []string{"one", "two"} {
		s.does(engine.Backup(place, backup.Take{Repository: "main", Kind: modelbackup.Incremental, Operation: operation}))
		s.Keep("b")
	}
	list, err := engine.ParseList([]byte(s.does(engine.List(place, "main"))))
	s.Must(err)
	full, incremental := list.Backups[0].Label, list.Backups[1].Label
	s.waits(t)
	before := s.Keep("c")
	s.Keep("d")
	s.waits(t)
	lost := sourcetest.Ask[string](s.Source, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
	e := s.Keep("e")
	s.waits(t)
	s.Keep("f")
	s.waits(t)
	request := func(t testing.TB, label string, target backup.Target) Request {
		r := s.request(t, backup.Restore{Repository: "main", Label: label, Target: target})
		r.Engine, r.Place.Repositories = engine, place.Repositories
		return r
	}
	for _, tt := range depth.Some(t, 2, []struct {
		name, part string
		remove     bool
		of         string // label
	}{
		{"a bundle", full + "/bundle/1", false, full},
		{"a bundle that is gone", full + "/bundle/1", true, full},
		{"a large file", full + "/pg_data/base", false, full},
		{"a large file that is gone", full + "/pg_data/base", true, full},
		{"both manifests", incremental + "/backup.manifest", false, incremental},
	}) {
		t.Run(tt.name, func(t *testing.T) {
			undo := s.spoil(t, tt.part, tt.remove)
			defer undo()
			_, err := Restore(t.Context(), request(t, incremental, backup.Target{Newest: true}))
			e, ok := errors.AsType[*Error](err)
			if !ok || !e.Final || !slices.Equal(e.Backups, []string{tt.of}) || e.Lost != "" || !strings.Contains(e.Reason, strings.TrimSuffix(tt.part, "/base")) {
				t.Errorf("%+v", err)
			}
		})
	}
	t.Run("one manifest", func(t *testing.T) {
		undo := s.spoil(t, incremental+"/backup.manifest.copy", false)
		defer undo()
		if _, err := Restore(t.Context(), request(t, incremental, backup.Target{})); err != nil {
			t.Error(err)
		}
	})
	newest, past := backup.Target{Newest: true}, backup.Target{Until: e.At}
	for _, tt := range depth.Some(t, 2, []struct {
		name   string
		remove bool
		target backup.Target
	}{
		{"WAL is spoilt, until the newest", false, newest},
		{"WAL is spoilt, past it", false, past},
		{"WAL is missing, until the newest", true, newest},
		{"WAL is missing, past it", true, past},
	}) {
		t.Run(tt.name, func(t *testing.T) {
			undo := s.spoil(t, "/"+lost+"-", tt.remove)
			defer undo()
			_, err := Restore(t.Context(), request(t, incremental, tt.target))
			e, ok := errors.AsType[*Error](err)
			if !ok || !e.Final || e.Lost != lost || len(e.Backups) > 0 || e.Reaches.Before(before.At) || !strings.Contains(e.Reason, lost) {
				t.Fatalf("%+v, lost %s, before %s: %v", *e, lost, before.At, err)
			}
			r := request(t, full, backup.Target{Until: e.Reaches})
			if _, err := Restore(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if rows := strings.Join(s.look(t, r), " "); rows != "a b b c" {
				t.Errorf("until then it has %q", rows)
			}
		})
	}
	if _, err := Restore(t.Context(), request(t, incremental, backup.Target{Newest: true})); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

// TestARepositoryThatIsAwayIsNotDamaged, whatever part of it is away.
func TestARepositoryThatIsAwayIsNotDamaged(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	engine, place := s.repository(t)
	s.does(engine.Backup(place, backup.Take{Repository: "main", Kind: modelbackup.Full, Operation: "one"}))
	list, err := engine.ParseList([]byte(s.does(engine.List(place, "main"))))
	s.Must(err)
	r := s.request(t, backup.Restore{Repository: "main", Label: list.Backups[0].Label, Target: backup.Target{Newest: true}})
	r.Engine, r.Place.Repositories = engine, place.Repositories
	away := filepath.Join(s.Dir, "backups")
	for _, step := range []string{"copying", "copied", "timeline chosen"} {
		_, err = restore(t.Context(), r, func(at string) error {
			if at == step { // nothing can be found nor made there
				return errors.Join(os.Rename(away, away+"-away"), os.WriteFile(away, nil, 0o600))
			}
			return nil
		})
		if err == nil || Final(err) {
			t.Errorf("%s: %v", step, err)
		}
		if err := errors.Join(os.Remove(away), os.Rename(away+"-away", away)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Restore(t.Context(), r); err != nil {
		t.Errorf("once it is back: %v", err)
	}
}
