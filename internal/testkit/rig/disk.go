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

// Disk is a file system of its own, in a file beside where it is mounted, that can be made
// to hang: what writes to it waits, and cannot be killed.
type Disk struct{ dir, image string }

// DiskAt is the disk that MakeDisk put there.
func DiskAt(dir string) *Disk {
	return &Disk{dir: dir, image: filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".img")}
}

// MakeDisk puts a disk of 2 GiB where files will be kept; it takes the room that they take.
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

// Remove unmounts the disk, with all that is on it. A process that was killed keeps its
// files for a moment longer.
func (d *Disk) Remove() error {
	err := run("umount " + d.dir)
	for end := time.Now().Add(patience.For(5 * time.Second)); err != nil && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		err = run("umount " + d.dir)
	}
	return errors.Join(err, os.Remove(d.image))
}

// thawAfter is how long a disk may hang, whatever happens to who made it so.
const thawAfter = 90 * time.Second

// Freeze has the disk hang until it is thawed: by who asked for it, after thawAfter, or
// when this process has died.
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
		// It may have been thawed already, by the process that watches.
		_ = run("fsfreeze -u " + d.dir)
		return nil
	})
	if err := run("fsfreeze -f " + d.dir); err != nil {
		return nil, errors.Join(err, thaw())
	}
	return thaw, nil
}
