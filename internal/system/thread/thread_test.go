package thread

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/testkit"
)

// nobody returns a user without rights, and a directory that this user may list but not change.
func nobody(t *testing.T) (uid, gid int, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Missing(t, "root's rights, to give them up")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	dir, err = os.MkdirTemp("", "howdah-test-")
	if err := errors.Join(err, uidErr, gidErr, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return uid, gid, dir
}

// What runs as another user may do what that user may. Everything else goes on as root.
func TestAs(t *testing.T) {
	t.Parallel()
	uid, gid, dir := nobody(t)
	secret, ours, own := filepath.Join(dir, "secret"), filepath.Join(dir, "group"), filepath.Join(dir, "own")
	err := errors.Join(os.WriteFile(secret, nil, 0o600), os.WriteFile(ours, nil, 0o640), os.Mkdir(own, 0o700), os.Chown(own, uid, gid))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			err := As(uid, gid, func() error {
				for name, f := range map[string]func() error{
					"read a file of root's":         func() error { _, err := os.ReadFile(secret); return err },
					"read a file of root's group's": func() error { _, err := os.ReadFile(ours); return err },
					"write into root's directory":   func() error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) },
					"change a mode":                 func() error { return os.Chmod(secret, 0o666) },
					"give a file away":              func() error { return os.Chown(secret, uid, gid) },
					"remove it":                     func() error { return os.Remove(secret) },
				} {
					if err := f(); !errors.Is(err, os.ErrPermission) {
						t.Errorf("%s: %v", name, err)
					}
				}
				file, err := os.CreateTemp(own, "")
				if err != nil {
					return err
				}
				return file.Close()
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.ReadFile(secret); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	all.Wait()
	made, err := os.ReadDir(own)
	if err != nil || len(made) != 50 {
		t.Fatalf("%d files, %v", len(made), err)
	}
	var s unix.Stat_t
	if err := unix.Stat(filepath.Join(own, made[0].Name()), &s); err != nil || int(s.Uid) != uid || int(s.Gid) != gid {
		t.Errorf("it is of %d:%d, %v", s.Uid, s.Gid, err)
	}
	why := errors.New("why")
	if err := As(uid, gid, func() error { return why }); !errors.Is(err, why) {
		t.Errorf("the error of what was run: %v", err)
	}
}

// As does not run anything as root.
func TestAsRoot(t *testing.T) {
	t.Parallel()
	nobody(t)
	for _, id := range [][2]int{{0, 5}, {5, 0}, {-1, -1}} {
		err := As(id[0], id[1], func() error {
			t.Errorf("it ran as %v", id)
			return nil
		})
		if !errors.Is(err, ErrRights) {
			t.Errorf("%v: %v", id, err)
		}
	}
}

func TestThrowaway(t *testing.T) {
	t.Parallel()
	for range 20 {
		ran := 0
		if id := Throwaway(func() { ran = unix.Gettid() }); id != ran || id == unix.Getpid() {
			t.Errorf("thread %d, and it ran on %d of %d", id, ran, unix.Getpid())
		}
	}
}

// A process that is to end with the thread that started it goes on. So threads with other rights
// are kept, and not thrown away.
func TestAsEndsNoThread(t *testing.T) {
	uid, gid, _ := nobody(t)
	var started []*exec.Cmd
	for range 20 {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started = append(started, cmd)
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { _ = As(uid, gid, func() error { _, err := os.ReadDir("/"); return err }) })
		}
		all.Wait()
	}
	for _, cmd := range started {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %d has ended: %s, %v", cmd.Process.Pid, stat, err)
		}
	}
}
