package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNoDevice says that a path is on no block device of its own (overlay, tmpfs, network).
var ErrNoDevice = errors.New("not on a block device")

// Device is a whole disk, by its numbers. The zero value is no device.
type Device struct {
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
}

// String is the kernel's notation, as in "254:0".
func (d Device) String() string { return fmt.Sprintf("%d:%d", d.Major, d.Minor) }

func (d Device) covers(name string) bool { return d == Device{} || d.String() == name }

// System has the two roots that the search for a device reads. The zero value is this machine.
type System struct {
	Proc string // /proc
	Sys  string // /sys
}

// DeviceOf returns the disk on which a path is stored. For a partition that is the whole disk, as
// only a disk takes limits. For a file system without a device number of its own (btrfs) it is the
// disk that is mounted there. It returns ErrNoDevice if there is none.
func (s System) DeviceOf(name string) (Device, error) {
	var stat unix.Stat_t
	if err := unix.Stat(name, &stat); err != nil {
		return Device{}, fmt.Errorf("find the device of %s: %w", name, err)
	}
	number := stat.Dev
	if unix.Major(number) == 0 {
		source, err := s.mountedSource(name)
		if err != nil {
			return Device{}, err
		}
		number = source
	}
	return s.whole(Device{Major: unix.Major(number), Minor: unix.Minor(number)})
}

// mountedSource returns the number of the device that is mounted at a path, or nearest above it.
func (s System) mountedSource(name string) (uint64, error) {
	resolved, err := filepath.EvalSymlinks(name)
	if err != nil {
		return 0, fmt.Errorf("find the device of %s: %w", name, err)
	}
	mounts, _, err := readMounts(orElse(s.Proc, "/proc"))
	if err != nil {
		return 0, err
	}
	var nearest Mount
	for _, mount := range mounts {
		if within(resolved, mount.Point) && len(mount.Point) >= len(nearest.Point) {
			nearest = mount
		}
	}
	var stat unix.Stat_t
	err = unix.Stat(nearest.Source, &stat)
	if err != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFBLK {
		return 0, fmt.Errorf("%s is on %s: %w", name, nearest.FSType, ErrNoDevice)
	}
	return stat.Rdev, nil
}

// whole replaces a partition by its disk. In /sys the partition's directory lies in that of the
// disk.
func (s System) whole(device Device) (Device, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(orElse(s.Sys, "/sys"), "dev/block", device.String()))
	if err != nil {
		return Device{}, fmt.Errorf("find the disk of device %s: %w", device, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err != nil {
		return device, nil //nolint:nilerr // not a partition: the disk itself
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "dev"))
	if err != nil {
		return Device{}, fmt.Errorf("find the disk of partition %s: %w", device, err)
	}
	var disk Device
	if _, err := fmt.Sscanf(string(text), "%d:%d", &disk.Major, &disk.Minor); err != nil {
		return Device{}, fmt.Errorf("read the disk of partition %s: %w", device, err)
	}
	return disk, nil
}

func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
