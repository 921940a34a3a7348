package btrfs

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Forbid takes the right to make subvolumes from the calling thread, from all programs that it
// starts, and from theirs, for good. Otherwise everybody may make one below a directory of their
// own. Its quota group would have no limit, and the group of the directory would not count it. The
// thread must have given up further rights (PR_SET_NO_NEW_PRIVS), or belong to root.
//
// Programs for another processor than the machine's own, such as those of 32 bits, do not run
// afterwards, because their system calls have other numbers.
func Forbid() error {
	machine, ok := machines[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("forbid subvolumes: %w: not written for %s", ErrUnsupported, runtime.GOARCH)
	}
	filter := filterFor(machine)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Without this flag the kernel would make all of the program slower.
	const asFast = unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, asFast, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("forbid subvolumes: %w", errno)
	}
	return nil
}

// machines has the architecture of system calls, by Go's name of the processor.
var machines = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets into the struct seccomp_data that the filter judges. On both processors the lower half of
// an argument comes first.
const (
	offNumber  = 0
	offMachine = 4
	offRequest = 24 // the second argument
)

// otherNumbers is where the numbers of x86's third kind of system calls begin.
const otherNumbers = 0x40000000

// filterFor returns the program that the kernel runs at each system call.
func filterFor(machine uint32) []unix.SockFilter {
	forbidden := []uintptr{iocCreate, iocCreate2, iocCopy, iocCopy2}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// jump skips so many of the following instructions.
	jump := func(how uint16, value uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, K: value, Jt: uint8(yes), Jf: uint8(no)}
	}
	answer := func(what uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
	}
	n := len(forbidden)
	filter := []unix.SockFilter{
		load(offMachine),
		jump(unix.BPF_JEQ, machine, 0, n+5),
		load(offNumber),
		jump(unix.BPF_JGE, otherNumbers, n+3, 0),
		jump(unix.BPF_JEQ, unix.SYS_IOCTL, 0, n+1),
		load(offRequest),
	}
	for i, request := range forbidden {
		filter = append(filter, jump(unix.BPF_JEQ, uint32(request), n-i, 0))
	}
	return append(filter, answer(unix.SECCOMP_RET_ALLOW), answer(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
}
