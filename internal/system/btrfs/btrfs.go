// Package btrfs limits the size of directories by the quotas of Btrfs. A subvolume is a directory
// with a tree of files of its own. Its quota group counts how much of the disk they take, and the
// kernel refuses more than the group's limit, with EDQUOT. An operator enables quotas (`btrfs quota
// enable`); nothing here does.
//
// Only root may use it. A subvolume can be renamed and removed like a directory. But what lies in
// it can be renamed only within it (EXDEV).
package btrfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	// ErrUnsupported says that a directory's file system cannot limit anything, and why.
	ErrUnsupported = errors.New("the file system holds no limit")
	// ErrStale says that the file system has lost count, as after a large subvolume was deleted, or
	// that it is counting now. Limits do not hold until Recount is done. It is an ErrUnsupported.
	ErrStale = fmt.Errorf("%w: it has to count its quotas anew", ErrUnsupported)
	// ErrName says that no subvolume can have this name.
	ErrName = errors.New("the name is too long")
)

// ID names a quota group. The group of a subvolume has the subvolume's number.
type ID uint64

// NoLimit is the limit of a group without a limit.
const NoLimit int64 = -1

// levelBits is the number of bits below a group's level in its number.
const levelBits = 48

// Above returns a group that counts the groups of several subvolumes, which Join adds. Only the
// lower 48 bits of its number count.
func Above(number uint64) ID { return ID(1<<levelBits | number&(1<<levelBits-1)) }

// file returns the name of a group in sysfs.
func (id ID) file() string {
	return fmt.Sprintf("%d_%d", uint64(id)>>levelBits, uint64(id)&(1<<levelBits-1))
}

// Try returns nil if subvolumes can be made and limited in a directory. Otherwise it returns an
// ErrUnsupported that says why not. It writes nothing.
func Try(dir string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: only root may set a limit", ErrUnsupported)
	}
	if _, ok := machines[runtime.GOARCH]; !ok {
		return fmt.Errorf("%w: subvolumes cannot be forbidden on %s", ErrUnsupported, runtime.GOARCH)
	}
	groups, err := groupsOf(dir)
	if err != nil {
		return err
	}
	enabled, err := os.ReadFile(filepath.Join(groups, "enabled"))
	// Kernels before 6.1 have only the directory, and only while quotas are on.
	if errors.Is(err, os.ErrNotExist) {
		_, err = os.Stat(groups)
		enabled = []byte("1")
	}
	if err != nil || strings.TrimSpace(string(enabled)) != "1" {
		return fmt.Errorf("%w: it is Btrfs, and its quotas are not on (btrfs quota enable)", ErrUnsupported)
	}
	wrong, err := os.ReadFile(filepath.Join(groups, "inconsistent"))
	if err == nil && strings.TrimSpace(string(wrong)) == "1" {
		return ErrStale
	}
	return nil
}

// groupsOf returns where sysfs shows the groups of a directory's file system.
func groupsOf(dir string) (path string, err error) {
	err = on(dir, func(f *os.File) error {
		var is unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &is); err != nil {
			return fmt.Errorf("look at the file system of %s: %w", dir, err)
		}
		if uint64(is.Type) != unix.BTRFS_SUPER_MAGIC {
			return fmt.Errorf("%w: it is not Btrfs", ErrUnsupported)
		}
		var info fsInfo
		if _, err := call(f, iocInfo, unsafe.Pointer(&info)); err != nil {
			return fmt.Errorf("look at the file system of %s: %w", dir, err)
		}
		id := info.id
		path = fmt.Sprintf("/sys/fs/btrfs/%x-%x-%x-%x-%x/qgroups", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
		return nil
	})
	return path, err
}

// Make makes an empty subvolume, which belongs to root. Limit limits it later.
func Make(path string) error {
	args, err := named(path)
	if err != nil {
		return err
	}
	return on(filepath.Dir(path), func(f *os.File) error {
		if _, err := call(f, iocCreate, unsafe.Pointer(args)); err != nil {
			return fmt.Errorf("make subvolume %s: %w", path, err)
		}
		return nil
	})
}

// Delete removes a subvolume with all that is in it, at once. Its room is given back later. A
// subvolume in which another one lies is refused. Its group stays: see DropGroup.
func Delete(path string) error {
	args, err := named(path)
	if err != nil {
		return err
	}
	return on(filepath.Dir(path), func(f *os.File) error {
		if _, err := call(f, iocDestroy, unsafe.Pointer(args)); err != nil {
			return fmt.Errorf("delete subvolume %s: %w", path, err)
		}
		return nil
	})
}

// Of returns the group of a subvolume. ok is false for any other directory, for a link, and outside
// of Btrfs.
func Of(path string) (id ID, ok bool, err error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return 0, false, fmt.Errorf("look for a subvolume: %w", &os.PathError{Op: "lstat", Path: path, Err: err})
	}
	if stat.Ino != firstInode || stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, false, nil
	}
	err = on(path, func(f *os.File) error {
		var is unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &is); err != nil || uint64(is.Type) != unix.BTRFS_SUPER_MAGIC {
			return err
		}
		args := inodeArgs{inode: firstInode}
		if _, err := call(f, iocInode, unsafe.Pointer(&args)); err != nil {
			return fmt.Errorf("find the number of subvolume %s: %w", path, err)
		}
		id, ok = ID(args.tree), true
		return nil
	})
	return id, ok, err
}

// WriteInPlace makes new files in an empty directory be overwritten where they lie. Without it
// Btrfs keeps old data for as long as any of its neighbours is in use, and a database takes up to
// twice its size. The data of such files have no checksums of the file system.
func WriteInPlace(dir string) error {
	return on(dir, func(f *os.File) error {
		flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err == nil && flags&flagInPlace == 0 {
			err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|flagInPlace))
		}
		if err != nil {
			return fmt.Errorf("have files of %s written in place: %w", dir, err)
		}
		return nil
	})
}

// Limit sets how many bytes a group may have. A group that already has more gets no more. dir is
// any directory of the file system.
func Limit(dir string, id ID, bytes int64) error {
	// The kernel has the same number for no limit.
	args := limitArgs{group: uint64(id), flags: limitReferenced, referenced: uint64(bytes)}
	return on(dir, func(f *os.File) error {
		if _, err := call(f, iocLimit, unsafe.Pointer(&args)); err != nil {
			return fmt.Errorf("limit quota group %s: %w", id.file(), err)
		}
		return nil
	})
}

// Usage returns how many bytes a group has, and its limit. The bytes include those that are
// promised to writes under way.
func Usage(dir string, id ID) (bytes, limit int64, err error) {
	groups, err := groupsOf(dir)
	if err != nil {
		return 0, 0, err
	}
	read := func(name string) (n int64) {
		text, failed := os.ReadFile(filepath.Join(groups, id.file(), name))
		if failed == nil {
			n, failed = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		}
		err = errors.Join(err, failed)
		return n
	}
	bytes = read("referenced") + read("rsv_data") + read("rsv_meta_pertrans") + read("rsv_meta_prealloc")
	flags, limit := read("limit_flags"), read("max_referenced")
	if flags&limitReferenced == 0 {
		limit = NoLimit
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read quota group %s: %w", id.file(), err)
	}
	return bytes, limit, nil
}

// MakeGroup makes a group that Above returned. It is idempotent.
func MakeGroup(dir string, id ID) error {
	return change(dir, "make", id, groupArgs{create: 1, group: uint64(id)}, unix.EEXIST)
}

// DropGroup removes the group of a deleted subvolume, or a group of Above that counts no other
// group any more. Newer kernels remove the former by themselves, some time after the subvolume. It
// is idempotent. It returns EBUSY for a group that is still of use.
func DropGroup(dir string, id ID) error {
	return change(dir, "remove", id, groupArgs{group: uint64(id)}, unix.ENOENT)
}

func change(dir, what string, id ID, args groupArgs, fine error) error {
	return on(dir, func(f *os.File) error {
		if _, err := call(f, iocGroup, unsafe.Pointer(&args)); err != nil && !errors.Is(err, fine) {
			return fmt.Errorf("%s quota group %s: %w", what, id.file(), err)
		}
		return nil
	})
}

// Join makes the group above count what the group id counts. It is idempotent.
func Join(dir string, id, above ID) error {
	args := joinArgs{assign: 1, from: uint64(id), to: uint64(above)}
	return on(dir, func(f *os.File) error {
		again, err := call(f, iocJoin, unsafe.Pointer(&args))
		if errors.Is(err, unix.EEXIST) {
			return nil
		}
		if err == nil && again > 0 {
			err = recount(f) // files in it are others', too
		}
		if err != nil {
			return fmt.Errorf("put quota group %s into %s: %w", id.file(), above.file(), err)
		}
		return nil
	})
}

// Recount makes the file system count anew: see ErrStale. The count goes on after Recount returns.
// It takes longer the more files there are.
func Recount(dir string) error { return on(dir, recount) }

func recount(f *os.File) error {
	var args rescanArgs
	if _, err := call(f, iocRescan, unsafe.Pointer(&args)); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("count quotas anew: %w", err)
	}
	return nil
}
