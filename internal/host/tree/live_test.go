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
	"howdah/internal/testkit/loopdisk"
)

// data makes a directory with two files of these sizes, and what is to be left out.
func data(t *testing.T, dir string, sizes ...int) *os.Root {
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
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func outside(path string) bool { return path == "odd" || path == "pgsql_tmp" }

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
			source := data(t, from, 0, 1, 8192, 5<<20+17)
			var told tree.Copied
			done, err := tree.CopyLive(t.Context(), source, to, outside, func(c tree.Copied) { told = c })
			if err != nil {
				t.Fatal(err)
			}
			if done.Files != 4 || done.Shared+done.Written != 5<<20+17+8193 || told != done {
				t.Errorf("%+v, told %+v", done, told)
			}
			shares, err := tree.Shares(from, to)
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
	source := data(t, from, 10, 10, 10, 10)
	n := 0
	done, err := tree.CopyLive(t.Context(), source, filepath.Join(dir, "to"), func(path string) bool {
		if strings.HasPrefix(path, "base/1/") {
			if n++; n == 1 {
				_ = os.Remove(filepath.Join(from, "base/1/2"))
			}
		}
		return outside(path)
	}, nil)
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
		if _, err := tree.CopyLive(t.Context(), source, filepath.Join(dir, name), outside, nil); err == nil {
			t.Errorf("%s was copied", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.CopyLive(ctx, source, filepath.Join(dir, "never"), outside, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a copy that was broken off: %v", err)
	}
}
