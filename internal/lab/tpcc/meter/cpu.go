package meter

import (
	"fmt"
	"syscall"
	"time"
)

// CPU is what this process used of the processors, with all that it does beside the load.
type CPU struct {
	User   time.Duration `json:"user_ns"`
	System time.Duration `json:"system_ns"`
}

// UsedCPU returns what this process has used so far.
func UsedCPU() (CPU, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return CPU{}, fmt.Errorf("ask for the CPU time of this process: %w", err)
	}
	return CPU{User: time.Duration(u.Utime.Nano()), System: time.Duration(u.Stime.Nano())}, nil
}

// Since returns what was used after an earlier time.
func (c CPU) Since(before CPU) CPU {
	return CPU{User: c.User - before.User, System: c.System - before.System}
}

// Sum is what was used in all.
func (c CPU) Sum() time.Duration { return c.User + c.System }
