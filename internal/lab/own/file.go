package own

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"howdah/internal/system/plainfile"
)

// mostFile bounds what ReadFile reads, in bytes.
const mostFile = 16 << 20

// ErrForeign says that a file that the lab would act on was written by somebody else.
var ErrForeign = errors.New("it is not a file of this user's alone")

// WriteFile keeps a private file, whole or not at all, also if the machine ends. Whatever has its name is
// replaced, and no link is followed.
func WriteFile(path string, text []byte) error {
	if err := plainfile.Replace(path, text, 0o600); err != nil {
		return err
	}
	entry, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer entry.Close()
	return entry.Sync()
}

// ReadFile reads a file that WriteFile wrote. One of another user's, or that others may write, is
// ErrForeign: results may come from anywhere, and such a file says what is to be done.
func ReadFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		return nil, err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG || int(info.Uid) != os.Geteuid() || info.Mode&0o022 != 0 || info.Nlink > 1 {
		return nil, fmt.Errorf("%s: %w", path, ErrForeign)
	}
	return io.ReadAll(io.LimitReader(file, mostFile))
}
