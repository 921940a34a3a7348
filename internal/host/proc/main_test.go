package proc

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// roleVar makes this test binary play a part instead of running tests.
const roleVar = "HOWDAH_PROC_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "starter":
		exitWith(starter(os.Args[1], os.Args[2]))
	case "guardian":
		exitWith(guardian(os.Args[1]))
	case "holder":
		exitWith(holder(os.Args[1], os.Args[2]))
	}
	if err := onDisk(); err != nil {
		exitWith(err)
	}
	os.Exit(m.Run())
}

// onDisk puts temporary files on a disk if they would be in memory, which has no limits of IO.
func onDisk() error {
	if _, err := DeviceOf(os.TempDir()); err == nil {
		return nil
	}
	return os.Setenv("TMPDIR", "/var/tmp")
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// errand is what a starter is told.
type errand struct {
	Config  Config
	Only    Containment
	Command Command
}

// starter is an agent that starts a member and is killed. It writes down what it started, and
// stays.
func starter(asked, answer string) error {
	text, err := os.ReadFile(asked)
	if err != nil {
		return err
	}
	var s errand
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	s.Config.only = s.Only
	host, err := Open(s.Config)
	if err != nil {
		return err
	}
	group, err := host.Group("orders-1")
	if err != nil {
		return err
	}
	process, err := group.Start(context.Background(), s.Command)
	if err != nil {
		return err
	}
	if text, err = json.Marshal(process); err != nil {
		return err
	}
	if err := os.WriteFile(answer+".new", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(answer+".new", answer); err != nil {
		return err
	}
	<-time.After(time.Minute)
	return fmt.Errorf("not killed")
}

// holder takes so many MiB of memory, says so by a file, and keeps them.
func holder(mebibytes, dir string) error {
	n, err := strconv.Atoi(mebibytes)
	if err != nil {
		return err
	}
	memory := make([]byte, n<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	if err := os.WriteFile(filepath.Join(dir, "held"), nil, 0o600); err != nil {
		return err
	}
	<-time.After(time.Minute)
	return fmt.Errorf("held %d bytes", len(memory))
}
