package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/state"
	records "howdah/internal/state/format"
	"howdah/internal/testkit/hometest"
)

func source(h *hometest.Home) Source {
	return Source{Home: h.Home, Snapshot: h.Member.Snapshot, Version: "test"}
}

func taken(t *testing.T, h *hometest.Home, dir string) Backup {
	t.Helper()
	b, err := Take(t.Context(), dir, source(h))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A backup is whole, verified, and for its owner alone.
func TestTake(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	if _, err := h.Store.Client.Put(t.Context(), "/howdah/test", "x"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "backups")
	b := taken(t, h, dir)
	again, err := Verify(b.Path)
	if err != nil || again.Revision != b.Revision || again.Keys != 1 || again.Home != h.ID {
		t.Errorf("%+v, %v", again, err)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	all, err := List(dir, h.ID)
	if err != nil || len(all) != 1 || all[0].Err != nil || all[0].Path != b.Path {
		t.Errorf("%+v, %v", all, err)
	}
}

// Verify finds out whatever is changed in a backup, or missing from it.
func TestVerify(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	dir := t.TempDir()
	b := taken(t, h, dir)
	paths := []string{manifestFile, SnapshotFile, "home/howdah.json", "home/join.json", "home/pki/ca.key"}
	for _, path := range paths {
		full := filepath.Join(b.Path, path)
		text, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		flipped := append([]byte(nil), text...)
		flipped[len(flipped)/2] ^= 0xff
		for name, change := range map[string]func() error{
			"changed":   func() error { return os.WriteFile(full, flipped, 0o600) },
			"cut short": func() error { return os.WriteFile(full, text[:len(text)/2], 0o600) },
			"gone":      func() error { return os.Remove(full) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(b.Path); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s %s: %v", path, name, err)
			}
		}
		if err := os.WriteFile(full, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Verify(b.Path); err != nil {
		t.Error(err)
	}
}

// A backup of a newer release's records says so, before anything of it is read.
func TestABackupOfANewerRelease(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	from := source(h)
	from.Format = records.Of(h.Store.Client)
	won, err := h.Store.Commit(t.Context(), state.Put(state.ElectionRoot+"s1", "s1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := records.Raise(t.Context(), h.Store, state.Held(state.ElectionRoot+"s1", won), "1.0", time.Now()); err != nil {
		t.Fatal(err)
	}
	b, err := Take(t.Context(), t.TempDir(), from)
	if err != nil || b.Records != records.Newest || b.Release != "1.0" {
		t.Fatalf("%+v, %v", b, err)
	}
	path := filepath.Join(b.Path, manifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(strings.Replace(string(text), fmt.Sprintf(`"records": %d`, records.Newest), `"records": 1000`, 1), `"release": "1.0"`, `"release": "99.1"`, 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(b.Path); !errors.Is(err, records.ErrNewer) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "start howdah 99.1 or newer") {
		t.Errorf("%v", err)
	}
}

// A backup that fails, or whose program is killed, leaves the others as they are, and leaves
// nothing that looks like a backup.
func TestABackupThatFails(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	dir := t.TempDir()
	b := taken(t, h, dir)
	full := source(h)
	full.Snapshot = func(_ context.Context, to io.Writer) error {
		_, err := to.Write([]byte("half"))
		return errors.Join(err, syscall.ENOSPC)
	}
	if _, err := Take(t.Context(), dir, full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	killed := filepath.Join(dir, unfinished+prefix(h.ID))
	half := filepath.Join(dir, removed+filepath.Base(b.Path)) // its removal was
	if err := errors.Join(os.MkdirAll(filepath.Join(killed, "home"), 0o700), os.MkdirAll(filepath.Join(half, "home"), 0o700)); err != nil {
		t.Fatal(err)
	}
	all, err := List(dir, h.ID)
	if err != nil || len(all) != 1 || all[0].Path != b.Path || all[0].Err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	// What is no snapshot never becomes a backup.
	full.Snapshot = func(_ context.Context, to io.Writer) error {
		_, err := to.Write([]byte(strings.Repeat("x", 4096)))
		return err
	}
	if _, err := Take(t.Context(), dir, full); err == nil {
		t.Error("a snapshot that cannot be read was kept")
	}
	taken(t, h, dir)
	for _, path := range []string{killed, half} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}

// The newest backups that can be restored stay. Backups that cannot be restored do not count.
func TestPrune(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	dir := t.TempDir()
	old, kept, broken, last := taken(t, h, dir), taken(t, h, dir), taken(t, h, dir), taken(t, h, dir)
	if err := os.Truncate(filepath.Join(broken.Path, SnapshotFile), 10); err != nil {
		t.Fatal(err)
	}
	if err := Prune(dir, h.ID, 2); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{old.Path: false, kept.Path: true, broken.Path: true, last.Path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}
