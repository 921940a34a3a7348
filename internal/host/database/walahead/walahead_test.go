package walahead

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"howdah/internal/host/agent"
	"howdah/internal/model/lsn"
	"howdah/internal/testkit"
)

const size = 16 << 20

// drop writes a file and has the kernel forget its pages.
func drop(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err == nil {
		_, err = file.Write(bytes.Repeat([]byte{1}, size))
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// cached returns how many pages of a file the kernel has.
func cached(t *testing.T, path string) (n int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pages, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(pages)
	there := make([]byte, size/os.Getpagesize())
	_, _, number := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&pages[0])), uintptr(size), uintptr(unsafe.Pointer(&there[0])))
	if number != 0 {
		t.Fatal(number)
	}
	for _, page := range there {
		n += int(page & 1)
	}
	return n
}

func TestTheFilesThatComeNextAreRead(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "howdah-walahead-") // it must be a disk: memory forgets nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "pg_wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	name := func(n int) string { return filepath.Join(dir, "pg_wal", fmt.Sprintf("0000000300000001000000%02X", n)) }
	for n := range 6 {
		drop(t, name(n))
		if n := cached(t, name(n)); n > 0 {
			t.Fatalf("/var/tmp forgets nothing: %d pages are in memory", n)
		}
	}
	r := &Reader{Agent: &agent.Agent{}, DataDir: dir}
	at, now := lsn.LSN(1<<32+2*size+100), time.Now()
	whole := size / os.Getpagesize()
	look := func() {
		t.Helper()
		if err := r.look(at, 3, now); err != nil {
			t.Fatal(err)
		}
	}
	look()
	for n, want := range []int{0, 0, whole, whole, whole, 0} {
		testkit.Eventually(t, 30*time.Second, func() error {
			// Where memory is short the kernel leaves pages out, and reads them half a minute later.
			if now = now.Add(again); want > 0 {
				look()
			}
			if have := cached(t, name(n)); have != want {
				return fmt.Errorf("file %d has %d pages in memory, and not %d", n, have, want)
			}
			return nil
		})
	}
	// What was just read is not asked for again.
	look()
	drop(t, name(3))
	look()
	if have := cached(t, name(3)); have > 0 {
		t.Errorf("it was read again: %d pages are in memory", have)
	}
}

func TestADirectoryWithoutWAL(t *testing.T) {
	if err := Read(nil, t.TempDir(), []string{"000000010000000000000001"}); err != nil {
		t.Fatal(err)
	}
}

// A link, a pipe or a file of another size in the place of a WAL file is nobody's way to have the agent
// read something else, or wait.
func TestOnlyFilesOfWALAreRead(t *testing.T) {
	dir := t.TempDir()
	names := []string{"000000010000000000000001", "000000010000000000000002", "000000010000000000000003"}
	if err := os.Symlink("/etc/shadow", filepath.Join(dir, names[0])); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, names[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, names[2]), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, names[2]), 1<<50); err != nil && !errors.Is(err, unix.EFBIG) {
		t.Fatal(err)
	}
	if err := Read(nil, dir, names); err != nil {
		t.Fatal(err)
	}
}
