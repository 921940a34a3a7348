package agent

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/testkit/hosttest"
)

// A database's user may leave a tree that is deeper than any number of descriptors, and wide,
// and links out of it. All of it goes, and nothing else does.
func TestTheTrashIsEmptiedOfAnything(t *testing.T) {
	d := newDorm(t)
	a := d.open()
	outside := filepath.Join(t.TempDir(), "kept")
	d.Must(os.MkdirAll(outside, 0o755))
	d.Must(os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	left := a.Path(trashDir, "db-1.m1-1")
	d.Must(os.Mkdir(left, 0o700))
	const depth = 20000
	hosttest.MakeDeep(t, left, depth)
	for _, name := range []string{"link", "data"} {
		d.Must(os.Symlink(outside, filepath.Join(left, name)))
	}
	d.Must(unix.Mkfifo(filepath.Join(left, "pipe"), 0o600))
	d.Must(os.Mkdir(filepath.Join(left, "wide"), 0o700))
	for range 3000 {
		file, err := os.CreateTemp(filepath.Join(left, "wide"), "")
		d.Must(err)
		file.Close()
	}
	var before unix.Rlimit
	d.Must(unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	d.Must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(2048, before.Max), Max: before.Max}))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) })
	d.Must(a.EmptyTrash(t.Context()))
	if names, err := os.ReadDir(a.Path(trashDir)); err != nil || len(names) > 0 {
		t.Errorf("it has %v: %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
}
