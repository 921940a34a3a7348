package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/tree"
	"howdah/internal/model/patroni"
	"howdah/internal/system/btrfs"
	"howdah/internal/testkit"
	"howdah/internal/testkit/loopdisk"
)

const gib = 1 << 30

// onBtrfs has the host on a disk of its own, which holds limits.
func onBtrfs(t *testing.T) (*world, *Host) {
	t.Helper()
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "2048")
	w := newWorld(t, waits)
	w.Dir = filepath.Join(disk.Dir, "host")
	w.must(os.Mkdir(w.Dir, 0o755))
	a, _, err := w.place.open(t.Context())
	w.must(err)
	return w, a
}

func TestTheHardLimitIsFarAboveWhatPostgreSQLStopsAt(t *testing.T) {
	for _, given := range []int64{1 * gib, 5 * gib, 20 * gib, 1000 * gib, 64000 * gib} {
		over := given + given/10 + mostOver
		if storageLevel(postgres.StorageFull, over, given) != postgres.StorageOver || storageLevel(postgres.StorageFull, over-1, given) == postgres.StorageOver {
			t.Fatalf("%d bytes are not where %d are exceeded by far", over, given)
		}
		logs := min(max(given/logShare, leastLogBytes), mostLogBytes)
		if room := hardLimit(given) - over - logs; room < 2*fastest || hardLimit(given) > 2*given+9*gib {
			t.Errorf("%d GiB: the limit is %d MiB, which leaves %d MiB", given/gib, hardLimit(given)>>20, room>>20)
		}
	}
	if hardLimit(0) != 0 {
		t.Error("what has no storage has a limit")
	}
}

func (w *world) limitOf(a *Host, id string) int64 {
	w.Helper()
	group, ok, err := btrfs.Of(a.MemberDir(id))
	if err != nil || !ok {
		w.Fatalf("%s is no subvolume: %v", id, err)
	}
	_, limit, err := btrfs.Usage(a.Dir, group)
	w.must(err)
	return limit
}

// A member's directory is a subvolume whose limit follows what the database was given; an agent
// that was killed in between goes on; one that was there before stays as it is.
func TestAMembersDirectoryIsLimited(t *testing.T) {
	w, a := onBtrfs(t)
	id, old := "db-1.m1", "db-2.m1"
	w.must(a.Give(a.MemberDir(old)))
	w.must(btrfs.Make(a.MemberDir(id)))
	for range 2 {
		w.must(errors.Join(a.MakeMemberDir(id), a.MakeMemberDir(old)))
	}
	if !a.IsVolume(id) || a.IsVolume(old) {
		t.Errorf("subvolumes: the new one: %t; the old one: %t", a.IsVolume(id), a.IsVolume(old))
	}
	info, err := os.Stat(a.MemberDir(id))
	w.must(err)
	if uid, _ := owners(info); uid != a.UserOf(id).UID || uid == 0 || info.Mode().Perm() != 0o700 {
		t.Errorf("it belongs to %d, with mode %v", uid, info.Mode())
	}
	group, _, err := btrfs.Of(a.MemberDir(id))
	w.must(err)
	r := newRunner(a, NewMember(a.Agent, id))
	for _, bytes := range []int64{20 * gib, 50 * gib, 0} {
		r.Want.Limits.StorageBytes = bytes
		r.limitVolume()
		if now := w.limitOf(a, id); now != hardLimit(bytes) && (bytes > 0 || now != btrfs.NoLimit) {
			t.Errorf("given %d bytes it may have %d", bytes, now)
		}
	}
	r.Want.Limits.StorageBytes = 20 * gib
	kept := filepath.Join(a.MemberDir(id), keptDir)
	w.must(a.UserOf(id).MakeDir(kept))
	r.limitVolume()
	if now := w.limitOf(a, id); now != 2*hardLimit(20*gib) {
		t.Errorf("beside data that were put aside it may have %d", now)
	}
	w.must(btrfs.Limit(a.Dir, group, 8<<20))
	_ = a.UserOf(id).Do(func() error { return os.WriteFile(filepath.Join(kept, "file"), make([]byte, 8<<20), 0o600) })
	w.must(r.volume.hold(a.Dir, a.MemberDir(id), 8<<20))
	if r.volume.detail == "" {
		t.Error("nobody notices that it has all it may")
	}
	w.must(r.throwKept(time.Now()))
	w.must(a.EmptyTrash(t.Context()))
	if left, err := filepath.Glob(filepath.Join(a.MemberDir(id), "*")); err != nil || len(left) > 0 {
		t.Errorf("of what was put aside %v is left: %v", left, err)
	}
}

// All members together leave something of the disk.
func TestMembersLeaveAReserve(t *testing.T) {
	w, a := onBtrfs(t)
	free := func() (int64, int64) {
		var disk unix.Statfs_t
		w.must(unix.Statfs(a.Dir, &disk))
		return int64(disk.Blocks) * disk.Bsize, int64(disk.Bavail) * disk.Bsize
	}
	id := "db-1.m1"
	w.must(a.MakeMemberDir(id))
	size, before := free()
	var l limiter
	left, err := l.look(a.Dir, size, before)
	w.must(err)
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
	w.must(os.WriteFile(filepath.Join(a.Dir, "state"), make([]byte, 64<<20), 0o600))
}

// Prepared data get into a subvolume, belong to the member there, and nothing is left beside it.
func TestPreparedDataAreCopiedIntoASubvolume(t *testing.T) {
	w, a := onBtrfs(t)
	id := "db-1.m1"
	w.must(a.MakeMemberDir(id))
	r := newRunner(a, NewMember(a.Agent, id))
	w.must(r.openHandover())
	spare := a.spares.user()
	ready := filepath.Join(a.spares.dir(15), "ready-1")
	w.must(spare.MakeDir(filepath.Join(ready, "global")))
	w.must(spare.ReplaceFile(filepath.Join(ready, "global", "pg_control"), []byte("x"), 0o600))
	// A kill in the middle of a copy.
	w.must(a.UserOf(id).MakeDir(filepath.Join(a.handedPath(id), newData+partSuffix, "global")))
	w.must(a.spares.hand(id, 15))
	w.must(a.spares.hand(id, 15))
	// What the script does.
	w.must(a.UserOf(id).Do(func() error { return os.Rename(filepath.Join(a.handedPath(id), newData), r.dataDir()) }))
	for _, name := range []string{"", "global", "global/pg_control"} {
		info, err := os.Lstat(filepath.Join(r.dataDir(), name))
		w.must(err)
		if uid, _ := owners(info); uid != a.UserOf(id).UID {
			t.Errorf("%q belongs to %d", name, uid)
		}
	}
	w.must(a.closeHandover(id))
	w.must(a.EmptyTrash(t.Context()))
	for _, path := range []string{a.handedPath(id), a.stagePath(id), a.Path(handedDir, id)} {
		if tree.Exists(path) {
			t.Errorf("%s is there", path)
		}
	}
	if left, err := filepath.Glob(filepath.Join(a.MemberDir(id), thrownPrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// Data that were put aside count against the member's limit until they are removed, and so its limit
// is that of two copies until then.
func TestRoomForDataThatAreBeingRemoved(t *testing.T) {
	w, a := onBtrfs(t)
	id := "db-1.m1"
	w.must(a.MakeMemberDir(id))
	r := newRunner(a, NewMember(a.Agent, id))
	r.Want.Limits.StorageBytes = 20 << 30
	one := r.Room()
	w.must(a.UserOf(id).MakeDir(filepath.Join(a.MemberDir(id), keptDir)))
	if room := r.Room(); room != 2*one {
		t.Errorf("%d beside data that were put aside, want %d", room, 2*one)
	}
	w.must(a.ThrowOut(id, filepath.Join(a.MemberDir(id), keptDir)))
	if room := r.Room(); room != 2*one {
		t.Errorf("%d while they are removed, want %d", room, 2*one)
	}
	w.must(a.EmptyTrash(t.Context()))
	if room := r.Room(); room != one {
		t.Errorf("%d once they are gone, want %d", room, one)
	}
}

// A member that is deleted leaves neither a subvolume nor a quota group, however full it was, and
// whatever its user left there; an agent that is killed on the way goes on.
func TestADeletedMembersSubvolumeGoes(t *testing.T) {
	w, a := onBtrfs(t)
	groups := map[string]btrfs.ID{}
	for _, id := range []string{"db-1.m1", "db-2.m1"} {
		w.must(a.MakeMemberDir(id))
		group, _, err := btrfs.Of(a.MemberDir(id))
		w.must(err)
		groups[id] = group
		w.must(a.UserOf(id).MakeDir(filepath.Join(a.MemberDir(id), patroni.DataDir)))
	}
	makeDeep(t, a.MemberDir("db-1.m1"), 2000)
	// Nobody makes such a one under an agent that forbids it.
	w.must(btrfs.Make(filepath.Join(a.MemberDir("db-2.m1"), "within")))
	for id, group := range groups {
		w.must(btrfs.Limit(a.Dir, group, 4<<20))
		_ = a.UserOf(id).Do(func() error { return os.WriteFile(filepath.Join(a.MemberDir(id), "full"), make([]byte, 8<<20), 0o600) })
		w.must(os.Rename(a.MemberDir(id), a.Path(trashDir, id+"-1")))
	}
	// Killed after the subvolume was gone.
	w.must(os.Mkdir(a.Path(trashDir, groupNote+"77777"), 0o700))
	testkit.Eventually(t, time.Minute, func() error {
		unix.Sync()
		w.must(a.EmptyTrash(t.Context()))
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
