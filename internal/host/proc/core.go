package proc

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// withoutCores makes this process, and all that it starts from now on, leave no core files. Core
// files hold the memory of databases whose storage is encrypted, and would lie on disks that are
// not. The limit is one byte: with a limit of none, the kernel would still hand the memory to a
// program that collects it.
var withoutCores = sync.OnceValue(func() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		var now unix.Rlimit
		// A process that may not raise its limit already has a lower one.
		if unix.Getrlimit(unix.RLIMIT_CORE, &now) == nil && now.Max == 0 {
			return nil
		}
		return fmt.Errorf("have no core files written: %w", err)
	}
	return nil
})
