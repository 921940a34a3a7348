package database

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/pgversion"
)

// One spare waits until it is the first that was taken; more of each version from then on.
func TestSparesWanted(t *testing.T) {
	s := newSpares(nil)
	for _, step := range []struct{ major, ready, want int }{
		{15, 0, 1}, {15, 1, 1}, {16, 0, 1}, {15, 1, 1}, {15, 0, 2}, {15, 2, 2}, {15, 1, 2}, {16, 1, 1},
	} {
		if got := s.wanted(step.major, step.ready); got != step.want {
			t.Errorf("of version %d with %d ready: %d, want %d", step.major, step.ready, got, step.want)
		}
	}
	s.keep = 0
	if got := s.wanted(17, 0); got != 0 {
		t.Errorf("where none is kept: %d", got)
	}
}

// A preparation that was killed leaves shared memory that nobody would find again without
// its data directory: it goes with that.
func TestWhatAKilledPreparationLeavesIsRemoved(t *testing.T) {
	w := newWorld(t, waits)
	a := w.open()
	install, err := postgres.Find(pgversion.Major())
	w.Must(err)
	parent := a.spares.dir(install.Major)
	user := a.spares.user()
	w.Must(user.GiveDir(parent))
	dir := filepath.Join(parent, "making-1")
	w.Must(postgres.Prepare(t.Context(), install, user, dir))
	cmd := exec.Command(install.Program("postgres"), "--single", "-D", dir, "rdsadmin")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if user != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user.UID), Gid: uint32(user.GID)}
	}
	stdin, err := cmd.StdinPipe() // it waits for statements
	w.Must(err)
	defer stdin.Close()
	testkit.Start(t, cmd)
	var segment int
	testkit.Eventually(t, hosttest.Soon, func() error {
		text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		if len(lines) < 7 || len(strings.Fields(lines[6])) != 2 {
			return fmt.Errorf("no shared memory yet: %q", text)
		}
		segment, err = strconv.Atoi(strings.Fields(lines[6])[1])
		return err
	})
	w.Must(cmd.Process.Kill())
	_ = cmd.Wait() // it says that it was killed
	if _, err := unix.SysvShmCtl(segment, unix.IPC_STAT, new(unix.SysvShmDesc)); err != nil {
		t.Fatalf("shared memory %d: %v", segment, err)
	}
	a.spares.dropHalfMade()
	if _, err := unix.SysvShmCtl(segment, unix.IPC_STAT, new(unix.SysvShmDesc)); err == nil {
		t.Errorf("shared memory %d is left", segment)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data: %v", err)
	}
}
