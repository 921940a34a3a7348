package table

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Survives reports whether exactly this process handles or ignores a signal. Otherwise the signal
// may end it. It returns ErrGone if the process has ended.
func (r Root) Survives(id ID, signal syscall.Signal) (bool, error) {
	text, err := os.ReadFile(r.path(id.PID, "status"))
	if err != nil {
		return false, gone(id.PID, err)
	}
	if _, err := r.Live(id); err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigIgn" && name != "SigCgt" {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return false, fmt.Errorf("read the signals of process %s: %w", id, err)
		}
		if mask&(1<<(signal-1)) != 0 {
			return true, nil
		}
	}
	return false, nil
}
