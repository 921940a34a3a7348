package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"howdah/internal/model/patroni"
	"howdah/internal/system/owner"
)

const (
	// fillName is the lab's own file, in the directory of a member.
	fillName = "howdah-lab-fill"
	// leaveFree is what a machine's disk keeps free whatever the lab does, in bytes.
	leaveFree = 8 << 30
	// overFull is by how much more than its storage a database takes, when it is full.
	overFull = 64 << 20
)

// fillDisk fills what the primary has of the disk with a file of the lab's own.
func (g *Ground) fillDisk(ctx context.Context) (*Made, error) {
	m, err := g.primary(ctx)
	if err != nil {
		return nil, err
	}
	d, err := g.Truth(ctx)
	if err != nil || d == nil {
		return nil, errors.Join(err, ErrNoPrimary)
	}
	var used int64
	for _, own := range d.Members {
		if own.Name == m.name {
			used = own.StorageBytes
		}
	}
	size := int64(d.StorageGiB)<<30 + overFull - used
	file := Placed{Dir: m.dir(), Name: filepath.Join(patroni.DataDir, fillName)}
	free, err := file.free()
	if err != nil {
		return nil, fmt.Errorf("ask for the room on the disk: %w", err)
	}
	if d.StorageGiB == 0 || free-size < leaveFree {
		return nil, fmt.Errorf("%w: full-disk: the database may take %d GiB, and of %d GiB that are free %d stay so: give it less storage", ErrImpossible, d.StorageGiB, free>>30, leaveFree>>30)
	}
	made, err := g.begin(Record{Kind: "full-disk", Placed: &file})
	if err != nil {
		return made, err
	}
	made.healed = file.gone
	if err := file.fill(size); err != nil {
		return made, err
	}
	err = eventually(ctx, func() error {
		full, err := isFull(ctx, g, m.name)
		if err == nil && full == "" {
			err = errGoesOn
		}
		made.Proof = fmt.Sprintf("a file of %d MiB fills the storage of %s: %s", size>>20, m, full)
		return err
	})
	return made, err
}

// isFull says how full the database of a member is, once the control plane knows that it is full.
func isFull(ctx context.Context, g *Ground, name string) (string, error) {
	d, err := g.Truth(ctx)
	if err != nil || d == nil {
		return "", err
	}
	for _, m := range d.Members {
		if m.Name == name && m.StorageBytes >= int64(d.StorageGiB)<<30 {
			return fmt.Sprintf("%d of %d MiB are taken, and it is %s", m.StorageBytes>>20, d.StorageGiB<<10, d.Status), nil
		}
	}
	return "", nil
}

// Placed is a file of the lab's in the directory of a member. That member's user may put links there.
type Placed struct {
	Dir  string `json:"dir"`  // nobody but root may put another one in its place
	Name string `json:"name"` // below it
}

func (p Placed) String() string { return filepath.Join(p.Dir, p.Name) }

// at calls do with the directory of the file and the file's name there. All is done with the rights of the
// user whose directory Dir is, and no link is followed: it could lead to another disk.
func (p Placed) at(do func(dir int, name string) error) error {
	user, err := owner.Of(p.Dir)
	if err != nil {
		return err
	}
	return user.Do(func() error {
		top, err := unix.Open(p.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: p.Dir, Err: err}
		}
		defer unix.Close(top)
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
		var dir int
		err = again(func() (err error) {
			dir, err = unix.Openat2(top, filepath.Dir(p.Name), &how)
			return err
		})
		if err != nil {
			return &os.PathError{Op: "open", Path: filepath.Dir(p.String()), Err: err}
		}
		defer unix.Close(dir)
		if err := do(dir, filepath.Base(p.Name)); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		return nil
	})
}

// again repeats what a signal broke off, or a directory that was moved meanwhile.
func again(do func() error) (err error) {
	const tries = 100
	for range tries {
		if err = do(); !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return err
}

// free is how much room the disk has, in bytes.
func (p Placed) free() (bytes int64, err error) {
	err = p.at(func(dir int, _ string) error {
		var disk unix.Statfs_t
		err := unix.Fstatfs(dir, &disk)
		bytes = int64(disk.Bavail) * disk.Bsize //nolint:gosec // disks are smaller
		return err
	})
	return bytes, err
}

// fill makes the file, which takes so much room. What has its name is never replaced.
func (p Placed) fill(size int64) error {
	err := p.at(func(dir int, name string) error {
		file, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		defer unix.Close(file)
		return again(func() error { return unix.Fallocate(file, 0, 0, size) })
	})
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	return nil
}

// remove removes the file. One that is not there is no error.
func (p Placed) remove() error {
	err := p.at(func(dir int, name string) error { return unix.Unlinkat(dir, name, 0) })
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// gone returns an error while the file is there.
func (p Placed) gone() error {
	err := p.at(func(dir int, name string) error {
		var info unix.Stat_t
		return unix.Fstatat(dir, name, &info, unix.AT_SYMLINK_NOFOLLOW)
	})
	switch {
	case err == nil:
		return fmt.Errorf("%s: %w", p, errThere)
	case errors.Is(err, os.ErrNotExist):
		return nil
	}
	return err
}

var errThere = errors.New("it is there still")
