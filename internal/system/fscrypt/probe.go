package fscrypt

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Try encrypts a directory that it makes at this place, and removes it. nil says that directories
// of the same file system can be encrypted, and ErrUnsupported that they cannot. Only one caller
// may use the place at a time. What an earlier try left there is removed.
func Try(place string) (err error) {
	if err := os.RemoveAll(place); err != nil {
		return fmt.Errorf("try to encrypt: %w", err)
	}
	if err := os.Mkdir(place, 0o700); err != nil {
		return fmt.Errorf("try to encrypt: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	if _, err := KeyState(place, ID{}); err != nil {
		return err // without a write to the disk
	}
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails
	id, err := AddKey(place, key)
	if err != nil {
		return err
	}
	defer func() {
		_, gone := RemoveKey(filepath.Dir(place), id)
		err = errors.Join(err, gone)
	}()
	if err := Encrypt(place, id); err != nil {
		return err
	}
	if is, of, err := Of(place); err != nil || !of || is != id {
		return errors.Join(fmt.Errorf("try to encrypt: %w", ErrForeign), err)
	}
	return os.WriteFile(filepath.Join(place, "file"), []byte("x"), 0o600)
}

// Machine is where the kernel shows its devices. Its zero value is this machine.
type Machine struct {
	Sys string // in place of /sys
}

// maxDepth bounds how many devices may stand on each other.
const maxDepth = 16

// DiskEncrypted reports whether all disks below a directory are encrypted as a whole, by dm-crypt,
// so that whoever takes them away reads nothing. Disks that it cannot see count as not encrypted,
// such as those of Btrfs and of network file systems.
func (m Machine) DiskEncrypted(dir string) (bool, error) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return false, fmt.Errorf("look for the disk of %s: %w", dir, err)
	}
	return m.encrypted(fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)), 0), nil
}

// encrypted reports whether a device is one of dm-crypt, or all devices are that it stands on.
func (m Machine) encrypted(number string, depth int) bool {
	device, err := filepath.EvalSymlinks(filepath.Join(cmp.Or(m.Sys, "/sys"), "dev/block", number))
	if err != nil || depth > maxDepth {
		return false
	}
	if uuid, err := os.ReadFile(filepath.Join(device, "dm/uuid")); err == nil && strings.HasPrefix(string(uuid), "CRYPT-") {
		return !strings.HasPrefix(string(uuid), "CRYPT-VERITY") // which encrypts nothing
	}
	below, err := filepath.Glob(filepath.Join(device, "slaves/*/dev"))
	if _, part := os.Stat(filepath.Join(device, "partition")); err == nil && part == nil {
		below = []string{filepath.Join(filepath.Dir(device), "dev")} // its disk's
	}
	for _, file := range below {
		number, err := os.ReadFile(file)
		if err != nil || !m.encrypted(strings.TrimSpace(string(number)), depth+1) {
			return false
		}
	}
	return len(below) > 0
}
