package database

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/probe"
	"howdah/internal/testkit"
	"howdah/internal/testkit/loopdisk"
)

// btrfsWorld has the host on a disk of its own, which holds limits.
func btrfsWorld(t *testing.T) (*world, *Host) {
	t.Helper()
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "2048")
	w := newWorld(t, waits)
	w.Dir = filepath.Join(disk.Dir, "host")
	w.Must(os.Mkdir(w.Dir, 0o755))
	a := w.open()
	return w, a
}

func TestTheHardLimitIsFarAboveWhatPostgreSQLStopsAt(t *testing.T) {
	t.Parallel()
	for _, given := range []int64{1 * 1 << 30, 5 * 1 << 30, 20 * 1 << 30, 1000 * 1 << 30, 64000 * 1 << 30} {
		over := given + given/10 + probe.MostOver
		if probe.StorageLevel(postgres.StorageFull, over, given) != postgres.StorageOver || probe.StorageLevel(postgres.StorageFull, over-1, given) == postgres.StorageOver {
			t.Fatalf("%d bytes are not where %d are exceeded by far", over, given)
		}
		logs := min(max(given/logShare, leastLogBytes), mostLogBytes)
		if room := hardLimit(given) - over - logs; room < 2*probe.Fastest || hardLimit(given) > 2*given+9*1<<30 {
			t.Errorf("%d GiB: the limit is %d MiB, which leaves %d MiB", given>>30, hardLimit(given)>>20, room>>20)
		}
	}
	if hardLimit(0) != 0 {
		t.Error("what has no storage has a limit")
	}
}

// Data that were put aside count against the member's limit until they are removed, and so its
// limit is that of two copies until then.
func TestRoomForDataThatAreBeingRemoved(t *testing.T) {
	t.Parallel()
	w, a := btrfsWorld(t)
	id := "db-1.m1"
	w.Must(a.MakeMemberDir(id))
	r := unstarted(a, id)
	r.Want.Limits.StorageBytes = 20 << 30
	one := r.Room()
	w.Must(a.UserOf(id).MakeDir(filepath.Join(a.MemberDir(id), "data.kept")))
	if room := r.Room(); room != 2*one {
		t.Errorf("%d beside data that were put aside, want %d", room, 2*one)
	}
	w.Must(a.ThrowOut(id, filepath.Join(a.MemberDir(id), "data.kept")))
	if room := r.Room(); room != 2*one {
		t.Errorf("%d while they are removed, want %d", room, 2*one)
	}
	w.Must(a.EmptyTrash(t.Context()))
	if room := r.Room(); room != one {
		t.Errorf("%d once they are gone, want %d", room, one)
	}
}
