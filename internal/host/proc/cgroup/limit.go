package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
)

// ErrInUse says that more memory is in use than the limit allows. The previous limit stays.
var ErrInUse = errors.New("more memory is in use than the limit allows")

const (
	periodMicros  = 100_000 // of the CPU quota, the kernel's own default
	leastMicros   = 1_000   // the kernel refuses a smaller quota
	unlimitedV1   = "-1"
	unlimitedV2   = "max"
	cpuPeriodFile = "cpu.cfs_period_us"
	cpuQuotaFile  = "cpu.cfs_quota_us"
	cpuMaxFile    = "cpu.max"
	memoryFileV1  = "memory.limit_in_bytes"
	memoryFileV2  = "memory.max"
	readIOPSFile  = "blkio.throttle.read_iops_device"
	writeIOPSFile = "blkio.throttle.write_iops_device"
	ioMaxFile     = "io.max"
	noIOPS        = "riops=max wiops=max"
)

// SetCPU lets a group use this many CPUs' worth of time. 0 removes the limit. Less than a hundredth
// of a CPU is rounded up to that.
func SetCPU(version Version, dir string, cpus float64) error {
	quota := ""
	if cpus > 0 {
		quota = strconv.Itoa(max(leastMicros, int(math.Round(cpus*periodMicros))))
	}
	if version == V2 {
		return put(dir, cpuMaxFile, orElse(quota, unlimitedV2)+" "+strconv.Itoa(periodMicros))
	}
	if err := put(dir, cpuPeriodFile, strconv.Itoa(periodMicros)); err != nil {
		return err
	}
	return put(dir, cpuQuotaFile, orElse(quota, unlimitedV1))
}

// SetMemory limits the memory of a group, in bytes, its page cache included. 0 removes the limit.
// If more is in use and cannot be given back at once, it returns ErrInUse, and the old limit stays.
// Version 1 does so by itself. Version 2 would kill processes of the group instead, so it is not
// asked.
func SetMemory(version Version, dir string, bytes int64) error {
	limit := ""
	if bytes > 0 {
		limit = strconv.FormatInt(bytes, 10)
	}
	if version == V1 {
		err := put(dir, memoryFileV1, orElse(limit, unlimitedV1))
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("limit memory to %d bytes: %w", bytes, ErrInUse)
		}
		return err
	}
	if limit != "" {
		needed, err := unreclaimable(dir)
		if err != nil {
			return err
		}
		if needed > bytes {
			return fmt.Errorf("limit memory to %d bytes while %d cannot be given back: %w", bytes, needed, ErrInUse)
		}
	}
	return put(dir, memoryFileV2, orElse(limit, unlimitedV2))
}

// unreclaimable returns the memory of a version 2 group that is neither page cache of files nor
// reclaimable kernel memory.
func unreclaimable(dir string) (int64, error) {
	current, err := number(dir, "memory.current")
	if err != nil {
		return 0, err
	}
	stat, err := get(dir, "memory.stat")
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"inactive_file", "active_file", "slab_reclaimable"} {
		if value, err := keyed(stat, name); err == nil {
			current -= value
		}
	}
	return current, nil
}

// SetIOPS limits reads and writes a second on a device. Each may reach the number, because the
// kernel has no limit for both together. 0 removes the limit. It also removes limits of the group
// on other devices. With the zero Device it only does that.
func SetIOPS(version Version, dir string, device Device, iops int64) error {
	if err := clearOtherDevices(version, dir, device); err != nil || device == (Device{}) {
		return err
	}
	if version == V2 {
		limits := noIOPS
		if iops > 0 {
			limits = fmt.Sprintf("riops=%d wiops=%d", iops, iops)
		}
		return put(dir, ioMaxFile, device.String()+" "+limits)
	}
	line := fmt.Sprintf("%s %d", device, iops)
	return errors.Join(put(dir, readIOPSFile, line), put(dir, writeIOPSFile, line))
}

func clearOtherDevices(version Version, dir string, device Device) error {
	var errs []error
	for _, file := range ioFiles(version) {
		for line := range strings.Lines(read(dir, file)) {
			other, _, _ := strings.Cut(line, " ")
			if other != device.String() && other != "" {
				errs = append(errs, put(dir, file, other+noLimit(version)))
			}
		}
	}
	return errors.Join(errs...)
}

// Lift removes the CPU and IO limits, so that what is being killed need not wait for its turn to
// die. restore puts them back as they were.
func Lift(cpu Version, cpuDir string, io Version, ioDir string) (restore func() error) {
	var undo []func() error
	lift := func(dir, file, unlimited string) {
		before := strings.TrimSpace(read(dir, file))
		if before == "" || before == unlimited || put(dir, file, unlimited) != nil {
			return
		}
		undo = append(undo, func() error { return put(dir, file, before) })
	}
	switch cpu {
	case V1:
		lift(cpuDir, cpuQuotaFile, unlimitedV1)
	case V2:
		lift(cpuDir, cpuMaxFile, unlimitedV2)
	case None:
	}
	for _, file := range ioFiles(io) {
		for line := range strings.Lines(read(ioDir, file)) {
			device, _, _ := strings.Cut(line, " ")
			if put(ioDir, file, device+noLimit(io)) == nil {
				undo = append(undo, func() error { return put(ioDir, file, strings.TrimSpace(line)) })
			}
		}
	}
	return func() error {
		var errs []error
		for _, again := range undo {
			errs = append(errs, again())
		}
		return errors.Join(errs...)
	}
}

func ioFiles(version Version) []string {
	switch version {
	case V1:
		return []string{readIOPSFile, writeIOPSFile}
	case V2:
		return []string{ioMaxFile}
	default:
		return nil
	}
}

func noLimit(version Version) string {
	if version == V2 {
		return " " + noIOPS
	}
	return " 0"
}

func number(dir, file string) (int64, error) {
	text, err := get(dir, file)
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s of %s: %w", file, dir, err)
	}
	return value, nil
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
