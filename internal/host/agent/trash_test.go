package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/host/tree"
)

// A database's user may leave a tree that is deeper than any number of descriptors, and wide,
// and links out of it. All of it goes, and nothing else does.
func TestTheTrashIsEmptiedOfAnything(t *testing.T) {
	w := newWorld(t, "")
	a, _, err := w.open(t.Context())
	w.must(err)
	outside := filepath.Join(t.TempDir(), "kept")
	w.must(os.MkdirAll(outside, 0o755))
	w.must(os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	left := a.Path(trashDir, "db-1.m1-1")
	w.must(os.Mkdir(left, 0o700))
	const depth = 20000
	makeDeep(t, left, depth)
	for _, name := range []string{"link", "data"} {
		w.must(os.Symlink(outside, filepath.Join(left, name)))
	}
	w.must(unix.Mkfifo(filepath.Join(left, "pipe"), 0o600))
	w.must(os.Mkdir(filepath.Join(left, "wide"), 0o700))
	for range 3000 {
		file, err := os.CreateTemp(filepath.Join(left, "wide"), "")
		w.must(err)
		file.Close()
	}
	var before unix.Rlimit
	w.must(unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	w.must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(2048, before.Max), Max: before.Max}))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) })
	w.must(a.EmptyTrash(t.Context()))
	if names, err := os.ReadDir(a.Path(trashDir)); err != nil || len(names) > 0 {
		t.Errorf("it has %v: %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
}

// makeDeep makes directories below each other, whose names together are longer than a path.
func makeDeep(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for n := 0; err == nil && n < depth; n++ {
		const part = 100
		name := strings.TrimSuffix(strings.Repeat("d/", part), "/")
		for i := range part {
			if err = unix.Mkdirat(at, name[:2*i+1], 0o700); err != nil {
				break
			}
		}
		n += part - 1
		if err != nil {
			break
		}
		var next int
		next, err = unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(at)
		at = next
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(at)
}

// What a member's user put into the place where it is handed data is left to the trash: the
// runner does not wait until it is removed.
func TestThePlaceOfDataIsThrownAwayAtOnce(t *testing.T) {
	w := newWorld(t, "")
	a, _, err := w.open(t.Context())
	w.must(err)
	w.must(os.MkdirAll(filepath.Join(a.handedPath("db-1.m1"), "d"), 0o700))
	for range 2 {
		w.must(a.closeHandover("db-1.m1"))
	}
	if tree.Exists(a.handedPath("db-1.m1")) {
		t.Error("it is there")
	}
	left, err := filepath.Glob(a.Path(trashDir, "db-1.m1-*", "d"))
	if err != nil || len(left) != 1 {
		t.Errorf("the trash has %v: %v", left, err)
	}
}
