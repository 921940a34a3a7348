package walahead_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"howdah/internal/host/database/walahead"
	"howdah/internal/testkit"
)

const size = 16 << 20

// drop writes a file and has the kernel forget its pages.
func drop(t *testing.T, path string, at time.Time) {
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
	if err == nil {
		err = os.Chtimes(path, at, at)
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

// The file that was written last has the newest time; those that follow it were named anew, and keep
// the time of what was in them.
func TestTheFilesThatComeNextAreRead(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "howdah-walahead-") // it must be a disk: memory forgets nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	now := time.Now()
	name := func(n int) string { return filepath.Join(dir, fmt.Sprintf("0000000300000000000000%02X", n)) }
	for n, minutes := range []int{30, 20, 10, 50, 45, 40} {
		drop(t, name(n), now.Add(-time.Duration(minutes)*time.Minute))
	}
	drop(t, filepath.Join(dir, "000000030000000000000003.partial"), now)
	if err := os.Mkdir(filepath.Join(dir, "archive_status"), 0o700); err != nil {
		t.Fatal(err)
	}
	if n := cached(t, name(2)); n > 0 {
		t.Fatalf("/var/tmp forgets nothing: %d pages are in memory", n)
	}
	if err := walahead.Read(dir); err != nil {
		t.Fatal(err)
	}
	whole := size / os.Getpagesize()
	for n, want := range []int{0, 0, whole, whole, whole, 0} {
		testkit.Eventually(t, 10*time.Second, func() error {
			if have := cached(t, name(n)); have != want {
				return fmt.Errorf("file %d has %d pages in memory, and not %d", n, have, want)
			}
			return nil
		})
	}
}

func TestADirectoryWithoutWAL(t *testing.T) {
	if err := walahead.Read(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := walahead.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Fatal("a directory that is not there was read")
	}
}

// A link or a pipe in the place of a WAL file is nobody's way to have the agent read something else, or
// wait.
func TestOnlyFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/shadow", filepath.Join(dir, "000000010000000000000001")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "000000010000000000000002"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := walahead.Read(dir); err != nil {
		t.Fatal(err)
	}
}
