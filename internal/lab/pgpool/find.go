package pgpool

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// ErrMissing says that pgpool is not installed, and what installs it.
var ErrMissing = errors.New("pgpool-II is not installed: run sudo scripts/install --pgpool, which does not start the distribution's own pgpool")

// usual is where Debian has it: in a directory that ordinary users' paths do not name.
const usual = "/usr/sbin/pgpool"

// Find returns the program.
func Find() (string, error) { return find("pgpool", usual) }

// find looks for the names of a program, one after the other.
func find(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

// Version is what the program says of itself.
func Version(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil || text == "" {
		return "", fmt.Errorf("ask pgpool for its version: %w: %s", err, text)
	}
	return text, nil
}
