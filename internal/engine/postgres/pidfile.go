package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"howdah/internal/system/owner"
)

func readPIDFile(dataDir string) ([]byte, error) {
	owner, err := owner.Of(dataDir)
	if err != nil {
		return nil, err
	}
	return owner.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
}

// Postmaster reads the process number of the server that runs, or ran, on a data directory. It
// returns 0 if there is no pid file. The number does not say whether the process lives or is still
// the same: the caller must check its identity.
func Postmaster(dataDir string) (pid int, err error) {
	data, err := readPIDFile(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read pid file: %w", err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0, fmt.Errorf("read pid file: %w", err)
	}
	// A single-user server writes its number negated.
	return max(pid, -pid), nil
}

// Life names one life of the server that runs, or ran, on a data directory: a server that was started
// again has another one. It returns "" if there is no pid file: the server has ended. It does not say
// whether the process lives.
func Life(dataDir string) (string, error) {
	data, err := readPIDFile(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read pid file: %w", err)
	}
	lines := strings.SplitN(string(data), "\n", 4)
	if len(lines) < 4 {
		return "", fmt.Errorf("read pid file: %w", errShort)
	}
	return lines[0] + " since " + lines[2], nil
}

// errShort says that a pid file is being written.
var errShort = errors.New("it has too few lines")
