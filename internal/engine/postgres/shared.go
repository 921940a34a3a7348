package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/system/owner"
	"howdah/internal/system/plainfile"
)

// These constants describe a server's shared memory as PostgreSQL 15 to 18 lay it out: the header
// of its System V segment (PGShmemHeader, storage/pg_shmem.h), and the table of its dynamic
// segments (dsm_control_header, storage/ipc/dsm.c).
const (
	shmemMagic  = 679834894
	shmemHeader = 56
	dsmMagic    = 0x9a503d32
	dsmTable    = 16 // where the items begin
	dsmItem     = 40 // bytes of each

	dynamicDir = "/dev/shm"
)

// errShared says that a shared memory segment is not what it should be.
var errShared = errors.New("unknown shared memory")

// RemoveShared removes the shared memory that a killed server left. A server that starts on the
// same data does so itself, so this is for data that is about to be deleted. Otherwise about a
// megabyte would stay for good, and one of the 4,096 segments that Linux allows on a machine.
// RemoveShared removes nothing that a process uses, and nothing that does not belong to exactly
// this directory. It is idempotent.
func RemoveShared(dataDir string) error {
	owner, err := owner.Of(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return owner.Do(func() error { return removeShared(dataDir) })
}

func removeShared(dataDir string) error {
	id, err := sharedID(dataDir)
	if err != nil || id == 0 {
		return err
	}
	var desc unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &desc); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIDRM) {
		return nil // another process removed it
	} else if err != nil {
		return fmt.Errorf("look at shared memory: %w", err)
	}
	if desc.Nattch > 0 {
		return fmt.Errorf("segment %d is in use: %w", id, errShared)
	}
	table, err := dynamicTable(id, dataDir)
	if err != nil {
		return err
	}
	if err := removeDynamic(dynamicDir, table); err != nil {
		return err
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
		return fmt.Errorf("remove shared memory: %w", err)
	}
	return nil
}

// sharedID returns the number of the System V segment, or 0 if there is none. The seventh line of
// postmaster.pid has the segment's key and its number.
func sharedID(dataDir string) (int, error) {
	text, err := plainfile.Read(filepath.Join(dataDir, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read pid file: %w", err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return 0, nil
	}
	words := strings.Fields(lines[6])
	if len(words) != 2 {
		return 0, nil
	}
	id, err := strconv.Atoi(words[1])
	if err != nil {
		return 0, fmt.Errorf("read pid file: %w", err)
	}
	return id, nil
}

// dynamicTable returns the handle of the table of dynamic segments, which the System V segment
// names. That segment must say that it belongs to this directory.
func dynamicTable(id int, dataDir string) (uint32, error) {
	var own syscall.Stat_t
	if err := syscall.Stat(dataDir, &own); err != nil {
		return 0, fmt.Errorf("look at %s: %w", dataDir, err)
	}
	header, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return 0, fmt.Errorf("read shared memory: %w", err)
	}
	defer func() { _ = unix.SysvShmDetach(header) }()
	word := binary.NativeEndian
	if len(header) < shmemHeader || word.Uint32(header) != shmemMagic || word.Uint64(header[40:]) != own.Dev || word.Uint64(header[48:]) != own.Ino {
		return 0, fmt.Errorf("segment %d is not of %s: %w", id, dataDir, errShared)
	}
	return word.Uint32(header[24:]), nil
}

// removeDynamic removes the segments of a table, and then the table.
func removeDynamic(dir string, table uint32) error {
	path := func(handle uint32) string { return filepath.Join(dir, fmt.Sprintf("PostgreSQL.%d", handle)) }
	text, err := plainfile.Read(path(table))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read shared memory: %w", err)
	}
	word := binary.NativeEndian
	if len(text) < dsmTable || word.Uint32(text) != dsmMagic {
		return fmt.Errorf("%s is no table of segments: %w", path(table), errShared)
	}
	var errs []error
	for n := range int(word.Uint32(text[4:])) {
		at := dsmTable + n*dsmItem
		if at+dsmItem > len(text) {
			break
		}
		handle, used := word.Uint32(text[at:]), word.Uint32(text[at+4:]) > 0
		// Odd handles are parts of the main segment.
		if used && handle%2 == 0 {
			errs = append(errs, removeFile(path(handle)))
		}
	}
	return errors.Join(append(errs, removeFile(path(table)))...)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove shared memory: %w", err)
	}
	return nil
}
