package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit"
)

// detected detects this machine under a name of the test's own. The groups of that name are removed
// at the end.
func detected(t *testing.T) (Layout, string) {
	t.Helper()
	testkit.NeedRoot(t)
	name := fmt.Sprintf("howdah-proc-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	layout, err := Detect("/proc", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, top := range []string{layout.Unified, layout.Freezer} {
			if top != "" {
				testkit.Eventually(t, 10*time.Second, func() error { return Remove(top) })
			}
		}
	})
	return layout, name
}

func sleeper(t *testing.T) int {
	t.Helper()
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return command.Process.Pid
}

func TestDetectLeavesNothingBehind(t *testing.T) {
	layout, name := detected(t)
	for _, top := range []string{layout.Unified, layout.Freezer, layout.CPU.Top, layout.Memory.Top, layout.IO.Top} {
		if top == "" {
			continue
		}
		if filepath.Base(top) != name {
			t.Errorf("top group %s is not called %s", top, name)
		}
		if _, err := os.Stat(top); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", top, err)
		}
	}
}

func TestGroupOfVersion2(t *testing.T) {
	layout, _ := detected(t)
	if layout.Unified == "" {
		t.Skip("needs cgroup version 2: " + layout.UnifiedReason)
	}
	member, below := filepath.Join(layout.Unified, "m"), filepath.Join(layout.Unified, "m", "db")
	if populated, err := Populated(member); populated || err != nil {
		t.Errorf("a group that is not there: %v, %v", populated, err)
	}
	if err := errors.Join(Make(below), Make(below)); err != nil {
		t.Fatal(err)
	}
	pid := sleeper(t)
	if err := Add(below, pid); err != nil {
		t.Fatal(err)
	}
	if pids, err := Processes(member); err != nil || len(pids) != 1 || pids[0] != pid {
		t.Errorf("processes %v, %v", pids, err)
	}
	if populated, err := Populated(member); !populated || err != nil {
		t.Errorf("populated %v, %v", populated, err)
	}
	if err := Remove(member); !errors.Is(err, ErrBusy) {
		t.Errorf("removing a group with a process: %v", err)
	}
	if err := Freeze(V2, member, true); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error { return is(Frozen(V2, member)) })
	if !HasKill(member) {
		t.Skip("needs cgroup.kill, Linux 5.14")
	}
	if err := Kill(member); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		populated, err := Populated(member)
		return is(!populated, err)
	})
	if err := errors.Join(Remove(member), Remove(member), Kill(member), Freeze(V2, member, false)); err != nil {
		t.Error(err)
	}
}

func TestFreezerRemovesOnlyWhatIsEmpty(t *testing.T) {
	layout, _ := detected(t)
	if layout.Freezer == "" {
		t.Skip("needs the freezer of version 1: " + layout.FreezerReason)
	}
	member := filepath.Join(layout.Freezer, "m")
	if err := Make(member); err != nil {
		t.Fatal(err)
	}
	pid := sleeper(t)
	if err := errors.Join(Add(member, pid), Freeze(V1, member, true)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error { return is(Frozen(V1, member)) })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := Remove(member); !errors.Is(err, ErrBusy) {
		t.Errorf("removing a group with a frozen process: %v", err)
	}
	if err := Freeze(V1, member, false); err != nil {
		t.Fatal(err)
	}
	// The process is now a zombie of ours, which the kernel does not count.
	testkit.Eventually(t, 10*time.Second, func() error { return Remove(member) })
}

// The kernel has the rule that a group with processes cannot have controllers for its children. It
// is tried with the one controller that version 2 has on a hybrid host.
func TestEnable(t *testing.T) {
	layout, _ := detected(t)
	base := filepath.Dir(layout.Unified)
	if layout.Unified == "" || !strings.Contains(read(base, "cgroup.controllers"), "hugetlb") {
		t.Skip("needs cgroup version 2 with the controller hugetlb")
	}
	before := wanted
	wanted = []string{"hugetlb"}
	had := strings.Contains(read(base, "cgroup.subtree_control"), "hugetlb")
	member := filepath.Join(layout.Unified, "m")
	t.Cleanup(func() {
		wanted = before
		_ = put(member, "cgroup.subtree_control", "-hugetlb")
		_ = put(layout.Unified, "cgroup.subtree_control", "-hugetlb")
		if !had {
			_ = put(base, "cgroup.subtree_control", "-hugetlb")
		}
	})
	if err := errors.Join(Make(filepath.Join(member, "db")), Enable(base, member), Enable(base, member)); err != nil {
		t.Fatal(err)
	}
	if names := available(filepath.Join(member, "db")); len(names) != 1 {
		t.Errorf("controllers of the database's group: %v", names)
	}
	full := filepath.Join(layout.Unified, "full")
	if err := errors.Join(Make(full), Add(full, sleeper(t))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Kill(full) })
	err := Enable(base, full)
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(explain(err), "Delegate=yes") {
		t.Errorf("enabling in a group with a process: %v", err)
	}
}

// is turns a check into what Eventually wants.
func is(yes bool, err error) error {
	if err == nil && !yes {
		return errors.New("not yet")
	}
	return err
}
