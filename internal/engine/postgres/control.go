package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"howdah/internal/system/owner"
)

// ErrNoData says that a directory holds no PostgreSQL cluster.
var ErrNoData = errors.New("no PostgreSQL data here")

// State is the state in which a cluster was left, from its control file (enum DBState in
// PostgreSQL's catalog/pg_control.h, the same in 15 to 18).
type State int32

// The states.
const (
	StartingUp State = iota
	ShutDown
	ShutDownInRecovery
	ShuttingDown
	InCrashRecovery
	InArchiveRecovery
	InProduction
)

func (s State) String() string {
	names := []string{"starting up", "shut down", "shut down in recovery", "shutting down", "in crash recovery",
		"in archive recovery", "in production"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("unknown state %d", int32(s))
	}
	return names[s]
}

// Clean reports whether the server stopped in an orderly way.
func (s State) Clean() bool { return s == ShutDown || s == ShutDownInRecovery }

// Control is the part of the control file that has had the same layout since PostgreSQL 8. It is
// read directly because a failover waits for it.
type Control struct {
	SystemID uint64
	State    State
	// Timeline is that of the newest checkpoint; 0: the file ends before it.
	Timeline int
}

// ReadControl reads the control file of a data directory. It returns ErrNoData if there is none.
func ReadControl(dataDir string) (c Control, err error) {
	owner, err := owner.Of(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("%s: %w", dataDir, ErrNoData)
	}
	if err != nil {
		return c, fmt.Errorf("read control file: %w", err)
	}
	err = owner.Do(func() error {
		c, err = readControl(dataDir)
		return err
	})
	return c, err
}

func readControl(dataDir string) (Control, error) {
	file, err := os.OpenFile(filepath.Join(dataDir, "global", "pg_control"), os.O_RDONLY|unix.O_NONBLOCK, 0) // it may be a pipe
	if errors.Is(err, os.ErrNotExist) {
		return Control{}, fmt.Errorf("%s: %w", dataDir, ErrNoData)
	}
	if err != nil {
		return Control{}, fmt.Errorf("read control file: %w", err)
	}
	defer file.Close()
	// system_identifier uint64, pg_control_version uint32, catalog_version_no uint32, state int32,
	// time int64, checkPoint uint64, and of the checkpoint redo uint64, ThisTimeLineID uint32, in the
	// machine's own byte order.
	var head [52]byte
	n, err := io.ReadFull(file, head[:])
	if err != nil && n < 20 {
		return Control{}, fmt.Errorf("read control file: %w", err)
	}
	return Control{
		SystemID: binary.NativeEndian.Uint64(head[0:8]),
		State:    State(binary.NativeEndian.Uint32(head[16:20])),
		Timeline: int(binary.NativeEndian.Uint32(head[48:52])),
	}, nil
}
