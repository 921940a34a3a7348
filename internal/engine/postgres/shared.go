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

// What a server keeps in shared memory, as PostgreSQL 15 to 18 lay it out: the header
// of its System V segment (PGShmemHeader, storage/pg_shmem.h), and the table of its
// dynamic segments (dsm_control_header, storage/ipc/dsm.c).
const (
	shmemMagic  = 679834894
	shmemHeader = 56
	dsmMagic    = 0x9a503d32
	dsmTable    = 16 // where its items begin
	dsmItem     = 40 // bytes of each

	dynamicDir = "/dev/shm"
)

// errShared says that a shared memory segment is not what it should be.
var errShared = errors.New("unknown shared memory")

// RemoveShared removes the shared memory that a killed server left. A server that
// starts on the same data does so itself: it is for data that are about to be deleted,
// of which a segment, out of the 4,096 that Linux gives all databases of a machine, and
// about a megabyte would stay for good. Nothing is touched that a process uses, or that
// is not of exactly this directory. It changes nothing when called again.
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
		return nil // it is gone
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

// sharedID is the segment that postmaster.pid names in its seventh line, which holds
// its key and its number; 0 where there is none.
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

// dynamicTable is the handle of the table of dynamic segments, by a segment that says
// itself that it is of this directory.
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
