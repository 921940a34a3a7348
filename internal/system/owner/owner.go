// Package owner does what has to be done in directories of an operating-system user with that
// user's rights.
package owner

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/system/plainfile"
	"howdah/internal/system/thread"
)

// User is an operating-system user; nil is our own.
type User struct {
	Name     string
	UID, GID int
}

// Do runs f with no more rights to files than the user has. It is for all that lies
// in directories of the user's: whoever runs as that user may have put a link there, or
// exchange a file while it is looked at, and would have root follow. See thread.As
// for what f may do.
func (u *User) Do(f func() error) error {
	if u == nil {
		return f()
	}
	return thread.As(u.UID, u.GID, f)
}

// ReadFile reads a plain file with the user's rights. See plainfile.Read.
func (u *User) ReadFile(path string) (text []byte, err error) {
	err = u.Do(func() error {
		text, err = plainfile.Read(path)
		return err
	})
	return text, err
}

// ReplaceFile puts a text in the place of a file in one step, with the user's rights; the file
// is the user's.
func (u *User) ReplaceFile(path string, text []byte, mode os.FileMode) error {
	return u.Do(func() error { return plainfile.Replace(path, text, mode) })
}

// MakeDir makes a directory that only the user may enter, below one that is the user's.
func (u *User) MakeDir(path string) error {
	return u.Do(func() error {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
		return nil
	})
}

// Chmod changes the mode of a file, with the user's rights.
func (u *User) Chmod(path string, mode os.FileMode) error {
	return u.Do(func() error { return os.Chmod(path, mode) })
}

// Of is whom a directory belongs to; nil: to us. A link belongs to who has made it.
func Of(dir string) (*User, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return nil, nil //nolint:nilnil // nil is a user: our own
	}
	return &User{Name: strconv.Itoa(int(owner.Uid)), UID: int(owner.Uid), GID: int(owner.Gid)}, nil
}

// GiveDir makes a directory that only the user may enter, and gives it to the user. Nobody but
// the caller may change the directory that it lies in.
func (u *User) GiveDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make %s: %w", path, err)
	}
	if u == nil {
		return nil
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("give %s to user %s: %w", path, u.Name, err)
	}
	defer dir.Close()
	if err := dir.Chown(u.UID, u.GID); err != nil {
		return fmt.Errorf("give %s to user %s: %w", path, u.Name, err)
	}
	return nil
}
