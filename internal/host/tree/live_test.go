package tree_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/host/tree"
	"howdah/internal/system/owner"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/loopdisk"
)

// data makes a directory with two files of these sizes, and what is to be left out.
func data(t *testing.T, dir string, sizes ...int) {
	t.Helper()
	for _, sub := range []string{"base/1", "pgsql_tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for n, size := range sizes {
		content := make([]byte, size)
		_, _ = rand.Read(content) // it cannot fail
		if err := os.WriteFile(filepath.Join(dir, "base/1", fmt.Sprint(n)), content, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "pgsql_tmp/x"), nil, 0o600), os.Symlink("/etc", filepath.Join(dir, "odd"))); err != nil {
		t.Fatal(err)
	}
}

func outside(_ *os.Root, path string) bool { return path == "odd" || path == "pgsql_tmp" }

func TestCopyLive(t *testing.T) {
	t.Parallel()
	for name, disk := range map[string]func(*testing.T) string{
		"xfs":           func(t *testing.T) string { return loopdisk.NewXFS(t, "320").Dir },
		"ext4":          func(t *testing.T) string { return loopdisk.New(t, "64").Dir },
		"anywhere else": func(t *testing.T) string { return t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := disk(t)
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			data(t, from, 0, 1, 8192, 5<<20+17)
			var told tree.Copied
			done, err := tree.CopyLive(t.Context(), tree.Live{From: from, To: to, Skip: outside, Progress: func(c tree.Copied) error {
				told = c
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if done.Files != 4 || done.Shared+done.Written != 5<<20+17+8193 || told != done {
				t.Errorf("%+v, told %+v", done, told)
			}
			shares, err := tree.Shares(from, "base/1/2", nil, to, nil)
			if err != nil || shares != (name == "xfs") && name != "anywhere else" {
				t.Errorf("shares: %v, %v", shares, err)
			}
			if shares != (done.Shared > 0) || shares && done.Written > 0 {
				t.Errorf("where files share blocks is %v: %+v", shares, done)
			}
			for n := range 4 {
				path := fmt.Sprint("base/1/", n)
				one, errOne := os.ReadFile(filepath.Join(from, path))
				other, errOther := os.ReadFile(filepath.Join(to, path))
				info, err := os.Stat(filepath.Join(to, path))
				if err := errors.Join(errOne, errOther, err); err != nil || !bytes.Equal(one, other) || info.Mode().Perm() != 0o640 {
					t.Errorf("%s: %v", path, err)
				}
			}
			for _, path := range []string{"odd", "pgsql_tmp"} {
				if _, err := os.Lstat(filepath.Join(to, path)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s was copied", path)
				}
			}
			// What is written later on one side is not seen on the other.
			if err := os.WriteFile(filepath.Join(to, "base/1/2"), []byte("new"), 0o600); err != nil {
				t.Fatal(err)
			}
			if one, err := os.ReadFile(filepath.Join(from, "base/1/2")); err != nil || len(one) != 8192 {
				t.Errorf("the source has %d bytes, %v", len(one), err)
			}
		})
	}
}

// What goes or is replaced meanwhile is no reason to fail, and nothing leads out of the directory.
func TestCopyOfADirectoryThatChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	data(t, from, 10, 10, 10, 10)
	n := 0
	done, err := tree.CopyLive(t.Context(), tree.Live{From: from, To: filepath.Join(dir, "to"), Skip: func(root *os.Root, path string) bool {
		if strings.HasPrefix(path, "base/1/") {
			if n++; n == 1 {
				_ = os.Remove(filepath.Join(from, "base/1/2"))
			}
		}
		return outside(root, path)
	}})
	if err != nil || done.Files != 3 {
		t.Errorf("%+v, %v", done, err)
	}
	for name, plant := range map[string]func(string) error{
		"a link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a hard link": func(path string) error { return os.Link(filepath.Join(from, "base/1/0"), path) },
		"a pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(from, "base/1/3")
		_ = os.Remove(path)
		if err := plant(path); err != nil {
			t.Fatal(err)
		}
		if _, err := tree.CopyLive(t.Context(), tree.Live{From: from, To: filepath.Join(dir, name), Skip: outside}); !tree.Odd(err) {
			t.Errorf("%s was copied: %v", name, err)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(from, "base/1/3")), os.Truncate(filepath.Join(from, "base/1/0"), 1<<40)); err != nil {
		t.Fatal(err)
	}
	large := tree.Live{From: from, To: filepath.Join(dir, "large"), Skip: outside, Largest: 1 << 20}
	if _, err := tree.CopyLive(t.Context(), large); !tree.Odd(err) {
		t.Errorf("what is too large was copied: %v", err)
	}
	if err := os.Remove(filepath.Join(from, "base/1/0")); err != nil {
		t.Fatal(err)
	}
	hosttest.MakeDeep(t, filepath.Join(from, "base"), 30)
	if _, err := tree.CopyLive(t.Context(), tree.Live{From: from, To: filepath.Join(dir, "deep"), Skip: outside}); !tree.Odd(err) {
		t.Errorf("what is too deep was copied: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.CopyLive(ctx, tree.Live{From: from, To: filepath.Join(dir, "never"), Skip: outside}); !errors.Is(err, context.Canceled) {
		t.Errorf("a copy that was broken off: %v", err)
	}
}

// Each side is touched with the rights of its own user alone.
func TestCopyBetweenUsers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have other users' rights")
	}
	d := loopdisk.NewXFS(t, "320")
	one, other := &owner.User{Name: "one", UID: 40001, GID: 40001}, &owner.User{Name: "other", UID: 40002, GID: 40002}
	from, to := filepath.Join(d.Dir, "one"), filepath.Join(d.Dir, "other")
	data(t, from, 8192)
	if err := errors.Join(tree.Remove(t.Context(), filepath.Join(from, "odd")), tree.Give(from, one), other.GiveDir(to)); err != nil {
		t.Fatal(err)
	}
	done, err := tree.CopyLive(t.Context(), tree.Live{From: from, By: one, To: filepath.Join(to, "copy"), As: other})
	if err != nil || done.Shared != 8192 {
		t.Fatalf("%+v, %v", done, err)
	}
	copied := filepath.Join(to, "copy/base/1/0")
	if of, err := owner.Of(copied); err != nil || of == nil || of.UID != other.UID {
		t.Errorf("it belongs to %+v, %v", of, err)
	}
	if err := one.Do(func() error { return os.WriteFile(copied, nil, 0o600) }); !errors.Is(err, os.ErrPermission) {
		t.Errorf("the source's user writes to the copy: %v", err)
	}
	if _, err := tree.CopyLive(t.Context(), tree.Live{From: from, By: other, To: filepath.Join(to, "no"), As: other}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("it was read with another user's rights: %v", err)
	}
	if _, err := tree.CopyLive(t.Context(), tree.Live{From: from, By: one, To: filepath.Join(from, "no"), As: other}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("it was written with another user's rights: %v", err)
	}
}
