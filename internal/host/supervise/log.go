package supervise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// LogVariable tells a process to which file its output goes, so that the process keeps that
	// file within bounds: see OwnLog.
	LogVariable = "HOWDAH_LOG"

	// logSize is the size, in bytes, from which a log is put aside. oldLogs is how many old logs
	// are kept: path.1 is the youngest.
	logSize, oldLogs = 10 << 20, 4
	// logLook is the pause between two looks at the size.
	logLook = 5 * time.Second
)

// OwnLog returns the file to which the output of this process goes, or "" if this process is not to
// keep it within bounds. Programs that this one starts are not told, because they have output of
// their own.
func OwnLog() string {
	path := os.Getenv(LogVariable)
	_ = os.Unsetenv(LogVariable)
	return path
}

// KeepLog keeps the log of this process, at OwnLog's path, within bounds until ctx ends. When the
// file has grown too large, it leads standard output and standard error to a new file. No line is
// lost, because the kernel switches each in one step.
func KeepLog(ctx context.Context, path string, log *slog.Logger) {
	output{path: path, descriptors: []int{unix.Stdout, unix.Stderr}, size: logSize}.look(ctx, logLook, log)
}

// output is where a process writes its log.
type output struct {
	path        string
	descriptors []int
	size        int64
}

// look keeps the file within bounds until ctx ends.
func (o output) look(ctx context.Context, every time.Duration, log *slog.Logger) {
	for {
		if err := o.keep(); err != nil {
			log.Warn("keep the log within bounds", "path", o.path, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// keep puts the file aside if it is too large. It makes the descriptors write to the file at path
// if they do not yet: an earlier call may have ended between the two steps.
func (o output) keep() error {
	info, err := os.Stat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("look at the log: %w", err)
	case info.Size() >= o.size:
		if err := putAside(o.path); err != nil {
			return err
		}
	case o.written(info):
		return nil
	}
	return o.lead()
}

// written reports whether the last of the descriptors writes to this file.
func (o output) written(file os.FileInfo) bool {
	var own unix.Stat_t
	if err := unix.Fstat(o.descriptors[len(o.descriptors)-1], &own); err != nil {
		return false
	}
	other, ok := file.Sys().(*syscall.Stat_t)
	return ok && own.Dev == other.Dev && own.Ino == other.Ino
}

// putAside gives each old file the next number. The oldest is overwritten.
func putAside(path string) error {
	for n := oldLogs; n >= 1; n-- {
		err := os.Rename(Aside(path, n-1), Aside(path, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("put the log aside: %w", err)
		}
	}
	return nil
}

// Aside returns the path of a log that was put aside n times. 0 is the log itself.
func Aside(path string, n int) string {
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, n)
}

// lead makes the descriptors write to the file at path.
func (o output) lead() error {
	file, err := OpenLog(o.path)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, fd := range o.descriptors {
		if err := unix.Dup3(int(file.Fd()), fd, 0); err != nil {
			return fmt.Errorf("write to a new log: %w", err)
		}
	}
	return nil
}

// OpenLog opens a log for appending. If it is not there, it makes a private one.
func OpenLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return file, nil
}
