package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// throttle gives the members of the database the disk of a network: one that serves so many reads a
// second. Writes are as fast as they are.
func (b *bench) throttle() error {
	if b.iops == 0 {
		return nil
	}
	var disk unix.Stat_t
	if err := unix.Stat(b.dir, &disk); err != nil {
		return err
	}
	device, done := fmt.Sprintf("%d:%d", unix.Major(disk.Dev), unix.Minor(disk.Dev)), 0
	for pattern, line := range map[string]string{
		"/sys/fs/cgroup/blkio/howdah-*/%s.*/blkio.throttle.read_iops_device": fmt.Sprintf("%s %d", device, b.iops),
		"/sys/fs/cgroup/howdah-*/%s.*/io.max":                                fmt.Sprintf("%s riops=%d", device, b.iops),
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
		return errors.New("the reads of the disk cannot be limited: members have no control groups; -iops 0 does without")
	}
	return nil
}
