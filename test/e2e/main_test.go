package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"howdah/internal/testkit/pgtest"
)

// binary is the program that all of these tests use.
var binary string

// TestMain builds the program. Everything runs with the strictest umask that a user may have: what
// PostgreSQL's own user must reach may not depend on it.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "howdah-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "howdah")
	build := exec.Command("go", "build", "-o", binary, "howdah/cmd/howdah")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	if err := pgtest.UsePrograms(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	syscall.Umask(0o077)
	return m.Run()
}
