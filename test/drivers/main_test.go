// Package drivers runs AWS's driver wrappers, as their makers publish them, against real hosts with
// real failovers: in Java with HikariCP, in Python and in Node.js. `make test-drivers` installs them
// first; they are no part of `make test`.
package drivers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"howdah/internal/testkit/rig"
)

// installed is where scripts/get-drivers has put them, and binary is howdah.
var installed, binary string

func TestMain(m *testing.M) {
	if installed = os.Getenv("HOWDAH_TEST_DRIVERS"); installed == "" {
		fmt.Fprintln(os.Stderr, "AWS's drivers are tested by make test-drivers")
		os.Exit(1)
	}
	if !rig.Isolate() {
		fmt.Fprintln(os.Stderr, "the tests of drivers need root: they give programs host names of their own")
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "howdah-drivers-")
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
	return m.Run()
}
