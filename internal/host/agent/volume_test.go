package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/system/btrfs"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/loopdisk"
)

const gib = 1 << 30

// onBtrfs has the host on a disk of its own, which holds limits.
func onBtrfs(t *testing.T) (*dorm, *Agent) {
	t.Helper()
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "2048")
	d := newDorm(t)
	d.Dir = filepath.Join(disk.Dir, "host")
	d.Must(os.Mkdir(d.Dir, 0o755))
	a := d.open()
	return d, a
}

func (d *dorm) limitOf(a *Agent, id string) int64 {
	d.Helper()
	group, ok, err := btrfs.Of(a.MemberDir(id))
	if err != nil || !ok {
		d.Fatalf("%s is no subvolume: %v", id, err)
	}
	_, limit, err := btrfs.Usage(a.Dir, group)
	d.Must(err)
	return limit
}

// A member's directory is a subvolume whose limit follows what the database was given; an agent
// that was killed in between goes on; one that was there before stays as it is.
func TestAMembersDirectoryIsLimited(t *testing.T) {
	d, a := onBtrfs(t)
	id, old := "db-1.m1", "db-2.m1"
	d.Must(a.Give(a.MemberDir(old)))
	d.Must(btrfs.Make(a.MemberDir(id)))
	for range 2 {
		d.Must(errors.Join(a.MakeMemberDir(id), a.MakeMemberDir(old)))
	}
	if !a.IsVolume(id) || a.IsVolume(old) {
		t.Errorf("subvolumes: the new one: %t; the old one: %t", a.IsVolume(id), a.IsVolume(old))
	}
	info, err := os.Stat(a.MemberDir(id))
	d.Must(err)
	if uid, _ := owners(info); uid != a.UserOf(id).UID || uid == 0 || info.Mode().Perm() != 0o700 {
		t.Errorf("it belongs to %d, with mode %v", uid, info.Mode())
	}
	group, _, err := btrfs.Of(a.MemberDir(id))
	d.Must(err)
	m := NewMember(a, id)
	for _, bytes := range []int64{20 * gib, 50 * gib, 0} {
		d.kind.room = bytes
		m.limitVolume()
		if now := d.limitOf(a, id); now != bytes && (bytes > 0 || now != btrfs.NoLimit) {
			t.Errorf("it has room for %d bytes, and may have %d", bytes, now)
		}
	}
	big := filepath.Join(a.MemberDir(id), "big")
	d.Must(a.UserOf(id).MakeDir(big))
	d.Must(btrfs.Limit(a.Dir, group, 8<<20))
	_ = a.UserOf(id).Do(func() error { return os.WriteFile(filepath.Join(big, "file"), make([]byte, 8<<20), 0o600) })
	d.Must(m.volume.hold(a.Dir, a.MemberDir(id), 8<<20))
	if m.volume.detail == "" {
		t.Error("nobody notices that it has all it may")
	}
	d.Must(a.ThrowOut(id, big))
	d.Must(a.EmptyTrash(t.Context()))
	if left, err := filepath.Glob(filepath.Join(a.MemberDir(id), "*")); err != nil || len(left) > 0 {
		t.Errorf("of what was thrown away %v is left: %v", left, err)
	}
}

// All members together leave something of the disk.
func TestMembersLeaveAReserve(t *testing.T) {
	d, a := onBtrfs(t)
	free := func() (int64, int64) {
		var disk unix.Statfs_t
		d.Must(unix.Statfs(a.Dir, &disk))
		return int64(disk.Blocks) * disk.Bsize, int64(disk.Bavail) * disk.Bsize
	}
	id := "db-1.m1"
	d.Must(a.MakeMemberDir(id))
	size, before := free()
	var l limiter
	left, err := l.look(a.Dir, size, before)
	d.Must(err)
	if l.why != "" || left != before-reserve(size) || left <= 0 {
		t.Errorf("%d of %d free bytes are the databases', %s", left, before, l.why)
	}
	err = a.UserOf(id).Do(func() error {
		file, err := os.Create(filepath.Join(a.MemberDir(id), "rubbish"))
		if err != nil {
			return err
		}
		defer file.Close()
		const step = 16 << 20
		for at := int64(0); err == nil; at += step {
			err = unix.Fallocate(int(file.Fd()), 0, at, step)
		}
		return err
	})
	if !errors.Is(err, unix.EDQUOT) {
		t.Errorf("a member with no limit of its own writes until %v", err)
	}
	if _, after := free(); after < reserve(size)-128<<20 {
		t.Errorf("%d bytes are free", after)
	}
	unix.Sync()
	if left, err := l.look(a.Dir, size, reserve(size)); err != nil || left != 0 {
		t.Errorf("%d bytes are left, %v", left, err)
	}
	d.Must(os.WriteFile(filepath.Join(a.Dir, "state"), make([]byte, 64<<20), 0o600))
}

// A member that is deleted leaves neither a subvolume nor a quota group, however full it was, and
// whatever its user left there; an agent that is killed on the way goes on.
func TestADeletedMembersSubvolumeGoes(t *testing.T) {
	d, a := onBtrfs(t)
	groups := map[string]btrfs.ID{}
	for _, id := range []string{"db-1.m1", "db-2.m1"} {
		d.Must(a.MakeMemberDir(id))
		group, _, err := btrfs.Of(a.MemberDir(id))
		d.Must(err)
		groups[id] = group
		d.Must(a.UserOf(id).MakeDir(filepath.Join(a.MemberDir(id), "data")))
	}
	hosttest.MakeDeep(t, a.MemberDir("db-1.m1"), 2000)
	// Nobody makes such a one under an agent that forbids it.
	d.Must(btrfs.Make(filepath.Join(a.MemberDir("db-2.m1"), "within")))
	for id, group := range groups {
		d.Must(btrfs.Limit(a.Dir, group, 4<<20))
		_ = a.UserOf(id).Do(func() error { return os.WriteFile(filepath.Join(a.MemberDir(id), "full"), make([]byte, 8<<20), 0o600) })
		d.Must(os.Rename(a.MemberDir(id), a.Path(trashDir, id+"-1")))
	}
	// Killed after the subvolume was gone.
	d.Must(os.Mkdir(a.Path(trashDir, groupNote+"77777"), 0o700))
	testkit.Eventually(t, time.Minute, func() error {
		unix.Sync()
		d.Must(a.EmptyTrash(t.Context()))
		names, err := os.ReadDir(a.Path(trashDir))
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("the trash has %v", names)
		}
		return err
	})
	for id, group := range groups {
		if _, _, err := btrfs.Usage(a.Dir, group); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the quota group of %s: %v", id, err)
		}
	}
}
