package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// throttle gives the members of the database the disk of a network: one that serves so many reads a
// second, and so many bytes; or, if on is false, a disk that is as fast as it is. Writes are never held
// back. What the system reads ahead comes on top: see /sys/block/*/queue/read_ahead_kb, which is 128 on
// most machines.
func (b *bench) throttle(on bool) error {
	if b.free {
		return nil
	}
	iops, mbps := b.iops, b.mbps
	if !on {
		iops, mbps = 1<<30, 1<<30 // more than there is
	}
	var disk unix.Stat_t
	if err := unix.Stat(b.dir, &disk); err != nil {
		return err
	}
	device, done := fmt.Sprintf("%d:%d", unix.Major(disk.Dev), unix.Minor(disk.Dev)), 0
	for pattern, line := range map[string]string{
		"/sys/fs/cgroup/blkio/howdah-*/%s.*/blkio.throttle.read_iops_device": fmt.Sprintf("%s %d", device, iops),
		"/sys/fs/cgroup/blkio/howdah-*/%s.*/blkio.throttle.read_bps_device":  fmt.Sprintf("%s %d", device, mbps*1_000_000),
		"/sys/fs/cgroup/howdah-*/%s.*/io.max":                                fmt.Sprintf("%s riops=%d rbps=%d", device, iops, mbps*1_000_000),
	} {
		files, err := filepath.Glob(fmt.Sprintf(pattern, strings.ToLower(b.id)))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.WriteFile(file, []byte(line), 0); err != nil {
				return fmt.Errorf("limit the reads of the disk: %w", err)
			}
			done++
		}
	}
	if done == 0 {
		return errors.New("the reads of the disk cannot be limited: members have no control groups; -free does without")
	}
	return nil
}

// stayThrottled keeps it so while a load runs: the agents give members the limits of their class again and
// again.
func (b *bench) stayThrottled(l *load) {
	for {
		select {
		case <-l.done:
			return
		case <-time.After(100 * time.Millisecond):
			_ = b.throttle(true)
		}
	}
}
