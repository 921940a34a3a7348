// Package fscrypt makes the kernel encrypt directories, each with a key of its own (fscrypt of
// ext4, F2FS and others). What lies below such a directory is on the disk only as ciphertext, names
// included. A key is given to a file system, for all users. The kernel forgets it at a reboot, and
// when it is removed. The usual rights to files hold.
//
// If a file system cannot encrypt, its disks may be encrypted as a whole: see DiskEncrypted.
package fscrypt

import (
	"crypto/hkdf"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// KeySize is the length of a key in bytes.
const KeySize = 64

// ID names a key. Whoever knows the name does not know the key.
type ID [unix.FSCRYPT_KEY_IDENTIFIER_SIZE]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Identify returns the name that the kernel gives to a key.
func Identify(key []byte) (ID, error) {
	if len(key) != KeySize {
		return ID{}, fmt.Errorf("name a key of %d bytes: %w", len(key), errKeySize)
	}
	name, err := hkdf.Key(sha512.New, key, nil, "fscrypt\x00\x01", len(ID{}))
	if err != nil {
		return ID{}, fmt.Errorf("name a key: %w", err)
	}
	return ID(name), nil
}

// State is what a file system knows of a key.
type State int

// The states. Fading says that the key was removed while files were open. Those files can still be
// used.
const (
	Absent State = iota
	Present
	Fading
)

var (
	// ErrUnsupported says that a file system does not encrypt directories.
	ErrUnsupported = errors.New("the file system does not encrypt directories")
	// ErrForeign says that a directory has another key, or is encrypted in another way.
	ErrForeign = errors.New("the directory is encrypted otherwise")

	errKeySize = errors.New("a key has 64 bytes")
)

// AddKey gives a key to the file system of a directory. A key that is already there stays.
func AddKey(dir string, key []byte) (ID, error) {
	if len(key) != KeySize {
		return ID{}, fmt.Errorf("add a key of %d bytes: %w", len(key), errKeySize)
	}
	arg := struct {
		unix.FscryptAddKeyArg
		raw [KeySize]byte
	}{}
	arg.Key_spec.Type = unix.FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER
	arg.Raw_size = KeySize
	copy(arg.raw[:], key)
	defer clear(arg.raw[:])
	if err := on(dir, unix.FS_IOC_ADD_ENCRYPTION_KEY, unsafe.Pointer(&arg)); err != nil {
		return ID{}, fmt.Errorf("give a key to the file system of %s: %w", dir, err)
	}
	return ID(arg.Key_spec.U[:len(ID{})]), nil
}

// RemoveKey takes a key back from the file system of a directory, whoever gave it. busy says that
// files are open: they can be used until they are closed and this is called again. A key that is
// not there counts as removed. The directory must not be encrypted with the key itself, because it
// is open meanwhile.
func RemoveKey(dir string, id ID) (busy bool, err error) {
	arg := unix.FscryptRemoveKeyArg{Key_spec: named(id)}
	request := uint(unix.FS_IOC_REMOVE_ENCRYPTION_KEY)
	if os.Geteuid() == 0 {
		request = unix.FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS
	}
	err = on(dir, request, unsafe.Pointer(&arg))
	if errors.Is(err, unix.ENOKEY) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove key %s from the file system of %s: %w", id, dir, err)
	}
	return arg.Removal_status_flags&unix.FSCRYPT_KEY_REMOVAL_STATUS_FLAG_FILES_BUSY != 0, nil
}

// KeyState returns what the file system of a directory knows of a key.
func KeyState(dir string, id ID) (State, error) {
	arg := unix.FscryptGetKeyStatusArg{Key_spec: named(id)}
	if err := on(dir, unix.FS_IOC_GET_ENCRYPTION_KEY_STATUS, unsafe.Pointer(&arg)); err != nil {
		return Absent, fmt.Errorf("look for key %s in the file system of %s: %w", id, dir, err)
	}
	switch arg.Status {
	case unix.FSCRYPT_KEY_STATUS_PRESENT:
		return Present, nil
	case unix.FSCRYPT_KEY_STATUS_INCOMPLETELY_REMOVED:
		return Fading, nil
	default:
		return Absent, nil
	}
}

// Encrypt makes an empty directory, and all that will lie below it, be encrypted with a key that
// its file system knows. A directory that already is so stays as it is.
func Encrypt(dir string, id ID) error {
	policy := unix.FscryptPolicyV2{
		Version:                   unix.FSCRYPT_POLICY_V2,
		Contents_encryption_mode:  unix.FSCRYPT_MODE_AES_256_XTS,
		Filenames_encryption_mode: unix.FSCRYPT_MODE_AES_256_CTS,
		Flags:                     unix.FSCRYPT_POLICY_FLAGS_PAD_32,
		Master_key_identifier:     id,
	}
	err := on(dir, unix.FS_IOC_SET_ENCRYPTION_POLICY, unsafe.Pointer(&policy))
	if errors.Is(err, unix.EEXIST) {
		err = ErrForeign
	}
	if err != nil {
		return fmt.Errorf("encrypt directory %s: %w", dir, err)
	}
	return nil
}

// Of returns the key that a directory is encrypted with. It returns false if the directory is not
// encrypted.
func Of(dir string) (ID, bool, error) {
	arg := unix.FscryptGetPolicyExArg{Size: uint64(unsafe.Sizeof(unix.FscryptPolicyV2{}))}
	err := on(dir, unix.FS_IOC_GET_ENCRYPTION_POLICY_EX, unsafe.Pointer(&arg))
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, ErrUnsupported):
		return ID{}, false, nil
	case err != nil:
		return ID{}, false, fmt.Errorf("look how %s is encrypted: %w", dir, err)
	case arg.Policy[0] != unix.FSCRYPT_POLICY_V2:
		return ID{}, false, fmt.Errorf("look how %s is encrypted: %w", dir, ErrForeign)
	}
	return ID(arg.Policy[8:]), true, nil
}

// Locked reports whether a directory is encrypted and its key is not there. Then what lies in it
// has no names, as if it was not there.
func Locked(dir string) (bool, error) {
	id, encrypted, err := Of(dir)
	if err != nil || !encrypted {
		return false, err
	}
	state, err := KeyState(dir, id)
	return state != Present, err
}

func named(id ID) unix.FscryptKeySpecifier {
	spec := unix.FscryptKeySpecifier{Type: unix.FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER}
	copy(spec.U[:], id[:])
	return spec
}

// on sends the kernel a request about a directory, which must be no link.
func on(dir string, request uint, arg unsafe.Pointer) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg))
	runtime.KeepAlive(arg)
	switch errno {
	case 0:
		return nil
	case unix.ENOTTY, unix.EOPNOTSUPP, unix.ENOSYS:
		return ErrUnsupported
	default:
		return errno
	}
}
