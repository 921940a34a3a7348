package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNoWeight says that the kernel weighs no group's operations against those of others, because the
// disk's scheduler does not.
var ErrNoWeight = errors.New("the disk's scheduler weighs nobody's operations")

// A group that yields has a tenth of the weight that groups have by themselves.
const (
	sharesV1 = "102" // of 1024
	weightV2 = "10"  // of 100
	weightIO = "50"  // of 500, in version 1
)

// YieldCPU has a group stand back for others that want the processors.
func YieldCPU(version Version, dir string) error {
	if version == V1 {
		return put(dir, "cpu.shares", sharesV1)
	}
	return put(dir, "cpu.weight", weightV2)
}

// YieldIO has a group stand back for others that want a disk. It returns ErrNoWeight if the kernel
// has no means. Which file there is depends on the kernel and on the schedulers of disks.
func YieldIO(version Version, dir string) error {
	files, weight := []string{"io.bfq.weight", "io.weight"}, weightV2
	if version == V1 {
		files, weight = []string{"blkio.bfq.weight", "blkio.weight"}, weightIO
	}
	yields := false
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := put(dir, name, weight); err != nil {
			return err
		}
		yields = true
	}
	if !yields {
		return fmt.Errorf("yield: %w", ErrNoWeight)
	}
	return nil
}
