package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"howdah/internal/testkit/patience"
)

// Disk is a file system in a file beside its mount point. It can be made to hang: then what writes
// to it waits, and cannot be killed.
type Disk struct{ dir, image string }

// DiskAt returns the disk that MakeDisk put there.
func DiskAt(dir string) *Disk {
	return &Disk{dir: dir, image: filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".img")}
}

// MakeDisk puts a disk of 2 GiB at a place for files. The disk takes only the room that the files
// take.
func MakeDisk(dir string) (*Disk, error) {
	d := DiskAt(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a disk: %w", err)
	}
	for _, command := range []string{
		"truncate -s 2G " + d.image,
		"mkfs.ext4 -q -E lazy_itable_init=1,lazy_journal_init=1 " + d.image,
		"mount -o loop " + d.image + " " + dir,
		"chmod 755 " + dir,
		"rm -rf " + filepath.Join(dir, "lost+found"),
	} {
		if err := run(command); err != nil {
			return nil, errors.Join(err, os.Remove(d.image))
		}
	}
	return d, nil
}

// Remove unmounts the disk, and deletes all that is on it. A process that was killed keeps its
// files for a moment longer.
func (d *Disk) Remove() error {
	err := run("umount " + d.dir)
	for end := time.Now().Add(patience.For(5 * time.Second)); err != nil && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		err = run("umount " + d.dir)
	}
	return errors.Join(err, os.Remove(d.image))
}

// thawAfter is how long a disk may hang, whatever happens to the process that froze it.
const thawAfter = 90 * time.Second

// Freeze makes the disk hang until it is thawed: by thaw, after thawAfter, or when this process has
// died.
func (d *Disk) Freeze() (thaw func() error, err error) {
	script := fmt.Sprintf(`for i in $(seq %d); do kill -0 %d 2>/dev/null || break; sleep 1; done; fsfreeze -u "$0"`,
		int(patience.For(thawAfter).Seconds()), os.Getpid())
	watch := exec.CommandContext(context.Background(), "setsid", "sh", "-c", script, d.dir)
	if err := watch.Start(); err != nil {
		return nil, fmt.Errorf("watch over a disk that hangs: %w", err)
	}
	thaw = sync.OnceValue(func() error {
		_ = watch.Process.Kill()
		_ = watch.Wait()
		// The process that watches may already have thawed it.
		_ = run("fsfreeze -u " + d.dir)
		return nil
	})
	if err := run("fsfreeze -f " + d.dir); err != nil {
		return nil, errors.Join(err, thaw())
	}
	return thaw, nil
}
