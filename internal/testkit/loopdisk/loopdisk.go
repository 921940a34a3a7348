// Package loopdisk gives tests a file system of their own, in a file.
package loopdisk

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/testkit/patience"
)

// Disk is a file system that is gone after the test.
type Disk struct {
	Dir   string // where it is mounted
	Image string // the file that it is in
}

// New makes a file system of this many MiB with mkfs.ext4, which gets options. It is in a new
// directory that others may pass through. It needs root.
func New(t testing.TB, mib string, options ...string) Disk {
	t.Helper()
	return formatted(t, mib, "mkfs.ext4", options)
}

// NewXFS makes one with mkfs.xfs, in which files can share blocks. It takes 300 MiB at least.
func NewXFS(t testing.TB, mib string) Disk {
	t.Helper()
	return formatted(t, mib, "mkfs.xfs", nil)
}

// NewBtrfs makes one with mkfs.btrfs, with quotas on.
func NewBtrfs(t testing.TB, mib string) Disk {
	t.Helper()
	d := formatted(t, mib, "mkfs.btrfs", nil)
	run(t, "mount", "-o", "remount,commit=1", d.Dir) // what is deleted is seen to go soon
	run(t, "btrfs", "quota", "enable", d.Dir)
	run(t, "btrfs", "quota", "rescan", "-w", d.Dir)
	return d
}

func formatted(t testing.TB, mib, program string, options []string) Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a file system")
	}
	above := t.TempDir()
	for dir := above; dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	d := Disk{Dir: filepath.Join(above, "disk"), Image: filepath.Join(above, "image")}
	must(t, os.Mkdir(d.Dir, 0o755))
	run(t, "truncate", "-s", mib+"M", d.Image)
	run(t, program, append(append([]string{"-q"}, options...), d.Image)...)
	d.Mount(t)
	t.Cleanup(d.Unmount)
	return d
}

// Mount mounts it, by a loop device that ends with the mount.
func (d Disk) Mount(t testing.TB) {
	t.Helper()
	run(t, "mount", "-o", "loop", d.Image, d.Dir)
}

// Unmount unmounts it. A process that was killed keeps its files for a moment longer. Whatever
// still uses it after that loses it.
func (d Disk) Unmount() {
	for end := time.Now().Add(patience.For(5 * time.Second)); d.mounted() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if exec.CommandContext(context.Background(), "umount", d.Dir).Run() == nil {
			return
		}
	}
	if d.mounted() {
		_ = exec.CommandContext(context.Background(), "umount", "-l", d.Dir).Run()
	}
}

func (d Disk) mounted() bool {
	text, err := os.ReadFile("/proc/self/mounts")
	return err == nil && strings.Contains(string(text), " "+d.Dir+" ")
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
