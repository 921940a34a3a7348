package btrfs

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These are the kernel's requests. linux/btrfs.h has the numbers and the layouts, and they never
// change.
const (
	magic = 0x94

	toKernel   = 1 << 30
	fromKernel = 2 << 30

	iocCreate  = toKernel | sizeNamed<<16 | magic<<8 | 14
	iocDestroy = toKernel | sizeNamed<<16 | magic<<8 | 15
	iocInode   = toKernel | fromKernel | unsafe.Sizeof(inodeArgs{})<<16 | magic<<8 | 18
	iocInfo    = fromKernel | unsafe.Sizeof(fsInfo{})<<16 | magic<<8 | 31
	iocJoin    = toKernel | unsafe.Sizeof(joinArgs{})<<16 | magic<<8 | 41
	iocGroup   = toKernel | unsafe.Sizeof(groupArgs{})<<16 | magic<<8 | 42
	iocLimit   = fromKernel | unsafe.Sizeof(limitArgs{})<<16 | magic<<8 | 43
	iocRescan  = toKernel | unsafe.Sizeof(rescanArgs{})<<16 | magic<<8 | 44

	// The other requests that make a subvolume: a copy of one, and a second version of each
	// request.
	iocCopy    = toKernel | sizeNamed<<16 | magic<<8 | 1
	iocCopy2   = toKernel | sizeNamed<<16 | magic<<8 | 23
	iocCreate2 = toKernel | sizeNamed<<16 | magic<<8 | 24

	// firstInode is the number of the first directory of each subvolume.
	firstInode = 256
	// limitReferenced says that the limit is for all data that the group can reach, shared with
	// others or not.
	limitReferenced = 1
	// flagInPlace is FS_NOCOW_FL.
	flagInPlace = 0x00800000
)

const sizeNamed = unsafe.Sizeof(namedArgs{})

type namedArgs struct {
	_    int64 // of other calls
	name [4088]byte
}

type inodeArgs struct {
	tree  uint64 // 0: that of the directory that is asked
	inode uint64
	_     [4080]byte
}

type fsInfo struct {
	_  [2]uint64
	id [16]byte
	_  [992]byte
}

type joinArgs struct{ assign, from, to uint64 }

type groupArgs struct{ create, group uint64 }

type limitArgs struct {
	group, flags, referenced uint64
	_                        [3]uint64
}

type rescanArgs struct{ _ [8]uint64 }

// longestName is what the kernel takes.
const longestName = 255

func named(path string) (*namedArgs, error) {
	name := filepath.Base(path)
	if len(name) > longestName {
		return nil, fmt.Errorf("%s: %w", path, ErrName)
	}
	var args namedArgs
	copy(args.name[:], name)
	return &args, nil
}

// call asks the kernel about an open directory.
func call(f *os.File, request uintptr, args unsafe.Pointer) (answer uintptr, err error) {
	answer, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(args))
	if errno != 0 {
		return 0, errno
	}
	return answer, nil
}

// on opens a directory, which must be no link, and calls do with it.
func on(dir string, do func(*os.File) error) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(f)
}
