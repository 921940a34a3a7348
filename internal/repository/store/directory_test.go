package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/testkit"
	"howdah/internal/testkit/loopdisk"
)

// Nothing is read or written through a link, whoever put it there.
func TestADirectoryFollowsNoLinks(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	d, err := OpenDirectory(dir, "")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(outside, "x"), []byte("secret"), 0o600))
	put(t, d, "db-2/x", "of another")
	for link, to := range map[string]string{"out": outside, "file": filepath.Join(outside, "x"), "inside": "db-2", "db-1/x": "../db-2/x"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o700))
		must(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for _, key := range []string{"out/x", "file", "inside/x", "db-1/x", "pipe"} {
		if _, _, err := d.Get(t.Context(), key, 0, -1); !errors.Is(err, ErrNotFound) {
			t.Errorf("get %s: %v", key, err)
		}
	}
	for _, key := range []string{"out/new", "inside/x"} {
		if _, err := d.Put(t.Context(), key, strings.NewReader("x")); !errors.Is(err, ErrName) {
			t.Errorf("put %s: %v", key, err)
		}
		must(t, d.Delete(t.Context(), key))
	}
	page, err := d.List(t.Context(), Query{Max: 10})
	if err != nil || len(page.Objects) != 1 || get(t, d, "db-2/x", 0, -1) != "of another" {
		t.Errorf("%+v, %v", page, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// A disk that is full, cannot be written to or is not mounted is told apart, and half of an object
// is never seen.
func TestADirectoryOnAnIllDisk(t *testing.T) {
	t.Parallel()
	disk := loopdisk.New(t, "32")
	first, err := OpenDirectory(disk.Dir, "")
	must(t, err)
	must(t, WriteMarker(t.Context(), first, Marker{ID: "one"}))
	d, err := OpenDirectory(disk.Dir, "one")
	must(t, err)
	put(t, d, "x", "before")
	if _, err := d.Put(t.Context(), "x", io.LimitReader(zeros{}, 100<<20)); !errors.Is(err, ErrFull) {
		t.Errorf("full: %v", err)
	}
	if got := get(t, d, "x", 0, -1); got != "before" {
		t.Errorf("it has %d bytes", len(got))
	}
	_, err = d.Put(t.Context(), "y", io.LimitReader(zeros{}, 1<<20))
	must(t, err) // what did not fit was removed
	must(t, unix.Mount("", disk.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if _, err := d.Put(t.Context(), "x", strings.NewReader("x")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	if err := d.Delete(t.Context(), "x"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("delete: %v", err)
	}
	disk.Unmount()
	if _, err := d.Put(t.Context(), "x", strings.NewReader("x")); !errors.Is(err, ErrAway) {
		t.Errorf("not mounted: %v", err)
	}
	if entries, err := os.ReadDir(disk.Dir); err != nil || len(entries) != 0 {
		t.Errorf("something was written to where it is mounted: %v, %v", entries, err)
	}
	if _, err := OpenDirectory(disk.Dir, "one"); !errors.Is(err, ErrAway) {
		t.Errorf("opened: %v", err)
	}
	disk.Mount(t)
	put(t, d, "x", "after")
	if _, err := OpenDirectory(disk.Dir, "two"); !errors.Is(err, ErrOther) {
		t.Errorf("another: %v", err)
	}
}

const killedDir = "HOWDAH_TEST_STORE_KILLED"

// TestKilledWriter is the process that TestKilled kills.
func TestKilledWriter(t *testing.T) {
	dir := os.Getenv(killedDir)
	if dir == "" {
		return
	}
	d, err := OpenDirectory(dir, "")
	must(t, err)
	for i := 0; ; i++ {
		text := bytes.Repeat([]byte(strconv.Itoa(i%10)), 3<<20)
		if _, err := d.Put(context.Background(), "db-1/x", bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever is killed while it writes leaves the object from before or the new one, and what is left
// beside it is removed.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := OpenDirectory(dir, "")
	must(t, err)
	for round := range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWriter$")
		cmd.Env = append(os.Environ(), killedDir+"="+dir)
		testkit.Start(t, cmd)
		etag := ""
		if round > 0 {
			head, err := d.Head(t.Context(), "db-1/x")
			must(t, err)
			etag = head.ETag
		}
		testkit.Eventually(t, 20*time.Second, func() error {
			head, err := d.Head(t.Context(), "db-1/x")
			if err == nil && head.ETag == etag {
				err = errors.New("nothing was written")
			}
			return err
		})
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		if text := get(t, d, "db-1/x", 0, -1); len(text) != 3<<20 || strings.Trim(text, text[:1]) != "" {
			t.Fatalf("it has %d bytes", len(text))
		}
	}
	must(t, d.Sweep(t.Context(), time.Now().Add(time.Hour)))
	if left, err := os.ReadDir(filepath.Join(dir, putDir)); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
