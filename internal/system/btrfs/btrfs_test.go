package btrfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/system/thread"
	"howdah/internal/testkit"
	"howdah/internal/testkit/loopdisk"
)

// someone is a user who has nothing else here.
const someone = 63999

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func groupOf(t *testing.T, path string) ID {
	t.Helper()
	id, ok, err := Of(path)
	if err != nil || !ok {
		t.Fatalf("%s is no subvolume: %v", path, err)
	}
	return id
}

// fill writes a file until it may write no more. It returns how many MiB it wrote, and why it
// ended.
func fill(path string, mib int) (int, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for n := range mib {
		if _, err := f.Write(block); err != nil {
			return n, err
		}
	}
	return mib, f.Sync()
}

func TestWhatCannotHoldALimit(t *testing.T) {
	testkit.NeedRoot(t)
	for why, dir := range map[string]string{
		"it is not Btrfs":       loopdisk.New(t, "16").Dir,
		"its quotas are not on": withoutQuotas(t),
	} {
		if err := Try(dir); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := Try(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	disk := loopdisk.New(t, "16")
	if _, ok, err := Of(disk.Dir); ok || err != nil {
		t.Errorf("a directory of ext4 is a subvolume: %v", err)
	}
}

func withoutQuotas(t *testing.T) string {
	disk := loopdisk.NewBtrfs(t, "128")
	if out, err := exec.Command("btrfs", "quota", "disable", disk.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return disk.Dir
}

// One subvolume is filled to its limit. Another one, and what lies in none, still have their room.
// More may be written once the limit grows or is removed.
func TestASubvolumeIsLimited(t *testing.T) {
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "512")
	must(t, Try(disk.Dir))
	one, other := filepath.Join(disk.Dir, "one"), filepath.Join(disk.Dir, "other")
	must(t, Make(one))
	must(t, Make(other))
	if err := Make(one); !errors.Is(err, os.ErrExist) {
		t.Errorf("twice: %v", err)
	}
	id := groupOf(t, one)
	must(t, Limit(disk.Dir, id, 20<<20))
	if used, limit, err := Usage(disk.Dir, id); err != nil || limit != 20<<20 || used > 1<<20 {
		t.Errorf("%d of %d bytes, %v", used, limit, err)
	}
	got, err := fill(filepath.Join(one, "a"), 40)
	if !errors.Is(err, unix.EDQUOT) || got < 15 || got > 20 {
		t.Errorf("%d MiB were written: %v", got, err)
	}
	for _, dir := range []string{other, disk.Dir} {
		if got, err := fill(filepath.Join(dir, "b"), 40); err != nil {
			t.Errorf("%d MiB were written in %s: %v", got, dir, err)
		}
	}
	if used, _, err := Usage(disk.Dir, id); err != nil || used < 15<<20 {
		t.Errorf("%d bytes, %v", used, err)
	}
	must(t, Limit(disk.Dir, id, 80<<20))
	if got, err := fill(filepath.Join(one, "c"), 40); err != nil {
		t.Errorf("%d MiB were written after it grew: %v", got, err)
	}
	must(t, Limit(disk.Dir, id, NoLimit))
	if _, limit, err := Usage(disk.Dir, id); limit != NoLimit || err != nil {
		t.Errorf("limit %d, %v", limit, err)
	}
}

// Two subvolumes together have no more than the limit of the group that counts both.
func TestAGroupAboveLimitsAllOfIt(t *testing.T) {
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "512")
	all := Above(7)
	for range 2 {
		must(t, MakeGroup(disk.Dir, all))
	}
	must(t, Limit(disk.Dir, all, 50<<20))
	for _, name := range []string{"one", "other"} {
		dir := filepath.Join(disk.Dir, name)
		must(t, Make(dir))
		for range 2 {
			must(t, Join(disk.Dir, groupOf(t, dir), all))
		}
	}
	if _, err := fill(filepath.Join(disk.Dir, "one", "a"), 30); err != nil {
		t.Errorf("the first one: %v", err)
	}
	if got, err := fill(filepath.Join(disk.Dir, "other", "a"), 30); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("the other one has got %d MiB: %v", got, err)
	}
	must(t, Try(disk.Dir)) // nothing has to be counted anew
	if err := DropGroup(disk.Dir, all); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a group in use was removed: %v", err)
	}
}

// A subvolume is renamed and deleted. Its group is deleted with it, and no new subvolume gets that
// group.
func TestASubvolumeGoesWithItsGroup(t *testing.T) {
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "256")
	before, after := filepath.Join(disk.Dir, "before"), filepath.Join(disk.Dir, "after")
	must(t, Make(before))
	id := groupOf(t, before)
	must(t, WriteInPlace(before))
	must(t, os.WriteFile(filepath.Join(before, "file"), []byte("x"), 0o600))
	must(t, os.Rename(before, after))
	if now := groupOf(t, after); now != id {
		t.Errorf("after a rename it is %v, not %v", now, id)
	}
	if err := os.Rename(filepath.Join(after, "file"), filepath.Join(disk.Dir, "file")); !errors.Is(err, unix.EXDEV) {
		t.Errorf("a file was moved out: %v", err)
	}
	must(t, Delete(after))
	testkit.Eventually(t, 60*time.Second, func() error {
		unix.Sync()
		return DropGroup(disk.Dir, id)
	})
	if _, _, err := Usage(disk.Dir, id); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its group: %v", err)
	}
	must(t, Make(after))
	must(t, os.Mkdir(before, 0o755))
	must(t, os.Symlink(after, filepath.Join(disk.Dir, "link")))
	for _, name := range []string{"before", "link"} {
		if _, ok, err := Of(filepath.Join(disk.Dir, name)); ok || err != nil {
			t.Errorf("%s is a subvolume: %v", name, err)
		}
	}
}

// Whoever owns a directory can make subvolumes in it, unless they were forbidden to, in whatever
// way they ask. They can do all else.
func TestSubvolumesAreForbidden(t *testing.T) {
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "256")
	dir := filepath.Join(disk.Dir, "theirs")
	must(t, Make(dir))
	must(t, os.Chown(dir, someone, someone))
	start := func(forbidden bool, command ...string) (string, error) {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone, Gid: someone}}
		var out []byte
		var err error
		thread.Throwaway(func() {
			if forbidden {
				if err = errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), Forbid()); err != nil {
					return
				}
			}
			out, err = cmd.CombinedOutput()
		})
		return string(out), err
	}
	if out, err := start(false, "btrfs", "subvolume", "create", "free"); err != nil {
		t.Errorf("anybody may make one: %v: %s", err, out)
	}
	for _, way := range [][]string{
		{"btrfs", "subvolume", "create", "hidden"},
		{"sh", "-c", "btrfs subvolume create hidden"},
		{"btrfs", "subvolume", "snapshot", ".", "hidden"},
		{"/usr/bin/python3", "-c", `
import fcntl, os
for number in (1, 14, 23, 24):
    try: fcntl.ioctl(os.open(".", os.O_RDONLY), 0x50009400 | number, bytearray(4096), True)
    except PermissionError: continue
    os._exit(0)
raise PermissionError("Operation not permitted")`},
	} {
		if out, err := start(true, way...); err == nil || !strings.Contains(out, "not permitted") {
			t.Errorf("%q: %v: %s", way, err, out)
		}
	}
	if out, err := start(true, "sh", "-c", "mkdir x && ls -la . && stty -a < /dev/null; rm -r x"); err != nil {
		t.Errorf("something else: %v: %s", err, out)
	}
}

func TestTheFilterSkipsToItsAnswers(t *testing.T) {
	filter := filterFor(machines[runtime.GOARCH])
	for i, step := range filter {
		if step.Code&7 == unix.BPF_JMP && i+1+int(max(step.Jt, step.Jf)) >= len(filter) {
			t.Errorf("step %d leaves the filter", i)
		}
	}
}
