package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/testkit"
)

// sysFor gives a path's real device number a place in a fake /sys.
func sysFor(t *testing.T, f fake, path, place string) {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	link := f.path(fmt.Sprintf("sys/dev/block/%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)))
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(f.path(place), link); err != nil {
		t.Fatal(err)
	}
}

func TestDeviceOfAPartitionIsItsDisk(t *testing.T) {
	rootOnDisk(t)
	f := newFake(t)
	f.file("sys/devices/sda/dev", "8:0\n")
	f.file("sys/devices/sda/sda3/dev", "8:3\n")
	f.file("sys/devices/sda/sda3/partition", "3\n")
	sysFor(t, f, "/", "sys/devices/sda/sda3")
	got, err := System{Proc: "/proc", Sys: f.path("sys")}.DeviceOf("/")
	if err != nil || got != (Device{Major: 8, Minor: 0}) {
		t.Errorf("got %s, %v", got, err)
	}
}

// rootOnDisk returns the device of the root file system, because temporary files may be in memory.
func rootOnDisk(t *testing.T) Device {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat("/", &stat); err != nil {
		t.Fatal(err)
	}
	if unix.Major(stat.Dev) == 0 {
		t.Skip("needs a root file system on a disk")
	}
	return Device{Major: unix.Major(stat.Dev), Minor: unix.Minor(stat.Dev)}
}

func TestDeviceOfAWholeDisk(t *testing.T) {
	want := rootOnDisk(t)
	f := newFake(t)
	f.file("sys/devices/vda/dev", "?")
	sysFor(t, f, "/", "sys/devices/vda")
	got, err := System{Sys: f.path("sys")}.DeviceOf("/")
	if err != nil || got != want {
		t.Errorf("got %s, want %s, %v", got, want, err)
	}
}

func TestDeviceOfMemoryIsNone(t *testing.T) {
	for _, path := range []string{"/proc", "/sys"} {
		if device, err := (System{}).DeviceOf(path); !errors.Is(err, ErrNoDevice) {
			t.Errorf("%s: got %s, %v", path, device, err)
		}
	}
}

func TestDeviceByTheMountThatIsNearest(t *testing.T) {
	testkit.NeedRoot(t)
	var stat unix.Stat_t
	if err := unix.Stat("/dev/loop0", &stat); err != nil {
		t.Skip("needs the device /dev/loop0")
	}
	f := newFake(t)
	f.file("proc/self/mountinfo", "1 1 0:1 / / rw - overlay overlay rw\n2 1 0:2 / /sys rw - btrfs /dev/loop0 rw\n3 1 0:3 / /sysx rw - tmpfs tmpfs rw\n")
	f.file("sys/devices/loop0/dev", "7:0\n")
	link := f.path(fmt.Sprintf("sys/dev/block/%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev)))
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(f.path("sys/devices/loop0"), link); err != nil {
		t.Fatal(err)
	}
	system := System{Proc: f.path("proc"), Sys: f.path("sys")}
	got, err := system.DeviceOf("/sys/kernel")
	if err != nil || got != (Device{Major: unix.Major(stat.Rdev), Minor: unix.Minor(stat.Rdev)}) {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := system.DeviceOf("/proc"); !errors.Is(err, ErrNoDevice) {
		t.Errorf("a path on overlay gave %s, %v", got, err)
	}
}

func TestDeviceOfAPathThatIsNotThere(t *testing.T) {
	if _, err := (System{}).DeviceOf("/no/such/path"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
