package proc

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// withoutCores has this process, and all that it starts from now on, leave no core files: they
// hold the memory of databases whose storage is encrypted, and lie on disks that are not. The
// limit is a byte, as none would still have the kernel hand the memory to a program that
// collects it.
var withoutCores = sync.OnceValue(func() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		var now unix.Rlimit
		// Who may not raise a limit has one that is lower.
		if unix.Getrlimit(unix.RLIMIT_CORE, &now) == nil && now.Max == 0 {
			return nil
		}
		return fmt.Errorf("have no core files written: %w", err)
	}
	return nil
})
