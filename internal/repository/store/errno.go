package store

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// kinds says what errors of the system mean for who writes.
var kinds = map[unix.Errno]error{
	unix.ENOENT: ErrNotFound,
	unix.ENOSPC: ErrFull, unix.EDQUOT: ErrFull,
	unix.EROFS: ErrReadOnly, unix.EACCES: ErrReadOnly, unix.EPERM: ErrReadOnly,
	unix.ENOTDIR: ErrName, unix.EISDIR: ErrName, unix.ENAMETOOLONG: ErrName, unix.ELOOP: ErrName, unix.EXDEV: ErrName,
	unix.EEXIST: ErrName, unix.ENOTEMPTY: ErrName,
	unix.EIO: ErrAway, unix.ESTALE: ErrAway, unix.ETIMEDOUT: ErrAway, unix.EHOSTDOWN: ErrAway, unix.EHOSTUNREACH: ErrAway,
	unix.ENOTCONN: ErrAway, unix.ENODEV: ErrAway, unix.ENXIO: ErrAway, unix.ESHUTDOWN: ErrAway,
}

// kindOf returns the error with its kind, for who writes.
func kindOf(err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok && kinds[errno] != nil {
		return fmt.Errorf("%w: %w", kinds[errno], err)
	}
	return err
}

// readKindOf returns the error with its kind, for who reads. What no object can be called is not
// there, and who may not read is let in no more.
func readKindOf(err error) error {
	err = kindOf(err)
	switch {
	case errors.Is(err, ErrName):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, ErrReadOnly):
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return err
}
