// Package imagefs makes a file system in a file, for those who have no disk to spare. The kernel
// can encrypt directories of it (ext4 with the feature encrypt). All of it needs root.
package imagefs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrExists says that a file is already there. It may be somebody's data.
	ErrExists = errors.New("the file is there already: remove it, or name another one")
	// ErrGone says that the file of a file system is not there.
	ErrGone = errors.New("the file is gone")
	// ErrOther says that something else is mounted at the place.
	ErrOther = errors.New("something else is mounted there")
)

// Make makes a file of this many bytes with an empty file system. The file takes room on its disk
// as it is written to. Either it is there as a whole, or it is not there.
func Make(ctx context.Context, file string, size int64) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("make %s: %w", file, ErrExists)
	}
	part := file + ".part"
	defer func() { _ = os.Remove(part) }() // it has its name by then
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	if err := os.Truncate(part, size); err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	if err := run(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-O", "encrypt", part); err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	// Unlike a rename, a link replaces nothing.
	if err := os.Link(part, file); err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	return nil
}

// Mount mounts a file at a directory, which it makes if need be. It is idempotent.
func Mount(ctx context.Context, file, dir string) error {
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("mount %s: %w", file, ErrGone)
	}
	own, mounted, err := Mounted(file, dir)
	switch {
	case err != nil:
		return err
	case own:
		return nil
	case mounted:
		return fmt.Errorf("mount %s at %s: %w", file, dir, ErrOther)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("mount %s: %w", file, err)
	}
	// The loop device ends with the mount.
	if err := run(ctx, "mount", "-t", "ext4", "-o", "loop,nosuid,nodev", file, dir); err != nil {
		return fmt.Errorf("mount %s at %s: %w", file, dir, err)
	}
	return nil
}

// unmountWithin is how long processes that have just ended may keep files open.
const unmountWithin = 10 * time.Second

// Unmount removes the mount of a file's file system from a directory. It is idempotent, and leaves
// any other mount there alone.
func Unmount(ctx context.Context, file, dir string) error {
	own, _, err := Mounted(file, dir)
	if err != nil || !own {
		return err
	}
	for deadline := time.Now().Add(unmountWithin); ; {
		err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Mounted reports whether a file's own file system is mounted at a directory, and whether anything
// is.
func Mounted(file, dir string) (own, mounted bool, err error) {
	dir, err = resolve(dir)
	if err != nil {
		return false, false, err
	}
	table, err := os.Open("/proc/self/mounts")
	if err != nil {
		return false, false, fmt.Errorf("look what is mounted: %w", err)
	}
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) > 1 && unquote.Replace(words[1]) == dir {
			own, mounted = backedBy(words[0], file), true // the last one covers the others
		}
	}
	return own, mounted, nil
}

// resolve follows links on the way to a directory that may not exist yet.
func resolve(dir string) (string, error) {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("look what is mounted: %w", err)
	}
	return filepath.Abs(dir)
}

// unquote undoes how the kernel writes paths with odd characters (proc(5)).
var unquote = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// backedBy reports whether a loop device shows this very file.
func backedBy(device, file string) bool {
	text, err := os.ReadFile(filepath.Join("/sys/class/block", filepath.Base(device), "loop/backing_file"))
	if err != nil {
		return false
	}
	shown, errShown := os.Stat(strings.TrimSuffix(string(text), "\n"))
	wanted, errWanted := os.Stat(file)
	return errShown == nil && errWanted == nil && os.SameFile(shown, wanted)
}

func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
