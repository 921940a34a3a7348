package osuser

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"howdah/internal/testkit"
)

// pool returns a pool of a claimant that lives as long as the test, with claims of the test's own.
// It may hand out users that the machine's real claims name. That harms nobody.
func pool(t *testing.T, claims, owner string) *Pool {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Missing(t, "users of one's own: run it as root")
	}
	if err := os.MkdirAll(owner, 0o700); err != nil {
		t.Fatal(err)
	}
	return &Pool{Dir: claims, Owner: owner}
}

func all(int) bool  { return true }
func none(int) bool { return false }

func mustTake(t *testing.T, p *Pool, free func(int) bool) int {
	t.Helper()
	uid, err := p.Take(free)
	if err != nil {
		t.Fatal(err)
	}
	return uid
}

func TestAUserIsMadeAndUsedAgain(t *testing.T) {
	p := pool(t, t.TempDir(), t.TempDir())
	first := mustTake(t, p, all)
	u, err := user.LookupId(strconv.Itoa(first))
	if err != nil || u.Username != Name(first) || u.Gid != u.Uid {
		t.Errorf("user %+v, %v", u, err)
	}
	if g, err := user.LookupGroupId(u.Gid); err != nil || g.Name != u.Username {
		t.Errorf("group %+v, %v", g, err)
	}
	if again := mustTake(t, p, all); again != first {
		t.Errorf("%d although %d is free", again, first)
	}
	if second := mustTake(t, p, none); second == first {
		t.Error("one that is not free was handed out")
	}
}

func TestTwoHostsNeverShareAUser(t *testing.T) {
	claims := t.TempDir()
	a, b := pool(t, claims, t.TempDir()), pool(t, claims, t.TempDir())
	mine := map[int]bool{}
	for range 3 {
		mine[mustTake(t, a, none)] = true
	}
	if uid := mustTake(t, b, all); mine[uid] {
		t.Errorf("%d is the other one's", uid)
	}
	for uid := range mine {
		if err := b.Keep(uid); !errors.Is(err, ErrTaken) {
			t.Errorf("keep: %v", err)
		}
		if err := a.Keep(uid); err != nil {
			t.Errorf("keep its own: %v", err)
		}
	}
}

// A host that was deleted no longer needs its users. A host whose disk is not there does.
func TestWhatADeletedHostHadIsFree(t *testing.T) {
	claims, home := t.TempDir(), t.TempDir()
	gone := pool(t, claims, filepath.Join(home, "hosts", "a"))
	had := mustTake(t, gone, all)
	if err := os.RemoveAll(filepath.Join(home, "hosts")); err != nil {
		t.Fatal(err)
	}
	next := pool(t, claims, t.TempDir())
	if uid := mustTake(t, next, all); uid != had {
		t.Errorf("%d, want %d again", uid, had)
	}

	mount := filepath.Join(home, "mount")
	if err := errors.Join(os.Mkdir(mount, 0o700), syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=1M")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, 0) }) // where the test ended before
	away := pool(t, claims, filepath.Join(mount, "host"))
	kept := mustTake(t, away, all)
	if err := syscall.Unmount(mount, 0); err != nil {
		t.Fatal(err)
	}
	if uid := mustTake(t, next, none); uid == kept {
		t.Error("its disk is only not mounted")
	}
}

// A process that goes on keeps its user from others.
func TestAUserWhoRunsIsNotFree(t *testing.T) {
	claims, home := t.TempDir(), t.TempDir()
	p := pool(t, claims, filepath.Join(home, "a"))
	uid := mustTake(t, p, all)
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	testkit.Start(t, cmd)
	if err := os.RemoveAll(p.Owner); err != nil {
		t.Fatal(err)
	}
	if got := mustTake(t, pool(t, claims, t.TempDir()), all); got == uid {
		t.Error("a process runs as it")
	}
}

// A disk that comes from another machine brings its users along.
func TestAUserThatAMachineDoesNotKnowIsMade(t *testing.T) {
	p := pool(t, t.TempDir(), t.TempDir())
	last := lastUID
	t.Cleanup(func() { _ = exec.Command("userdel", Name(last)).Run() })
	if err := p.Keep(last); err != nil {
		t.Fatal(err)
	}
	if u, err := user.LookupId(strconv.Itoa(last)); err != nil || u.Username != Name(last) {
		t.Errorf("%+v, %v", u, err)
	}
	if err := p.Keep(lastUID + 1); err != nil {
		t.Errorf("one that is not of the pool: %v", err)
	}
	if Name(lastUID+1) != "" || Name(0) != "" {
		t.Error("names for users that are not of the pool")
	}
}

// Several agents begin at once on a machine that has no such user yet.
func TestManyMakeTheSameUserAtOnce(t *testing.T) {
	p := pool(t, t.TempDir(), t.TempDir())
	last := lastUID - 1
	t.Cleanup(func() { _ = exec.Command("userdel", Name(last)).Run() })
	results := make(chan error)
	for range 4 {
		claims := t.TempDir() // so that no lock of ours keeps them apart
		go func() { results <- (&Pool{Dir: claims, Owner: p.Owner}).Keep(last) }()
	}
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
