package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/system/btrfs"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/loopdisk"
	"howdah/internal/testkit/rig"
)

// Somebody got out of a database into its operating-system user, and writes until the file system
// takes no more, twice. Another database on the same disk goes on as if nothing had happened, and
// so do the state and the agents. Status says why the first database stops. It goes on with all
// that it acknowledged when the rubbish is removed, and when its storage grows. When it is deleted,
// it leaves nothing.
func TestRubbishOfOneDatabaseIsLimited(t *testing.T) {
	depth.Deep(t)
	disk := loopdisk.NewBtrfs(t, "60000")
	s := begin(t, func(o *rig.Options) { o.Dir = disk.Dir })
	s.eventually(20*time.Second, s.limitsAreHeld)
	own, other := s.leader(s.given("orders", false)), s.leader(s.given("billing", false))
	dir := filepath.Dir(own.DataDir())
	group, ok, err := btrfs.Of(dir)
	if err != nil || !ok {
		t.Fatalf("%s is no subvolume: %v", dir, err)
	}
	if is, _, err := btrfs.Of(filepath.Dir(other.DataDir())); err != nil || is == group {
		t.Fatalf("the other database's is %v, %v", is, err)
	}
	s.hidesNothing(own, dir)

	w, others := s.writing("orders"), s.writing("billing")
	shell := s.shellAs(own)
	s.fillsUp(shell, dir)
	s.eventually(30*time.Second, func() error { return s.hasProblem("storage-full") })
	if err := s.exec("orders", "CREATE TABLE more AS SELECT generate_series(1, 1000000)"); err == nil {
		t.Error("it takes more still")
	}
	others.works(10 * time.Second)
	s.must(s.rig.Create(s.Context(), "more", false), "make another database meanwhile")
	_, err = shell("rm -r " + dir + "/rubbish")
	s.must(err, "remove the rubbish")
	w.works(90 * time.Second)
	s.eventually(60*time.Second, s.isWell)

	s.fillsUp(shell, dir)
	s.eventually(30*time.Second, func() error { return s.hasProblem("storage-full") })
	s.stopsForWAL(own)
	others.works(10 * time.Second)
	s.eventually(30*time.Second, func() error { return s.hasProblem("storage-full") })
	in := &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: new("orders"), AllocatedStorage: new(int32(30)), ApplyImmediately: new(true)}
	s.must(s.rig.Call(s.Context(), "ModifyDBInstance", in, &rds.ModifyDBInstanceResult{}), "give it more storage")
	w.works(90 * time.Second)
	w.nothingLost()

	s.removed("orders")
	s.eventually(60*time.Second, func() error {
		unix.Sync()
		if _, _, err := btrfs.Usage(disk.Dir, group); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("its quota group: %w", err)
		}
		return nil
	})
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
	others.nothingLost()
}

// limitsAreHeld returns nil if every host says that its file system limits databases.
func (s *story) limitsAreHeld() error {
	var status admin.Status
	if err := s.ask(admin.VerbStatus, admin.Nothing{}, &status); err != nil {
		return err
	}
	if len(status.Hosts) != len(rig.Zones) {
		return fmt.Errorf("%d hosts", len(status.Hosts))
	}
	for _, h := range status.Hosts {
		if h.StorageLimit != admin.StorageHeld || h.WhyWatched != "" {
			return fmt.Errorf("%s: %s: %s", h.Name, h.StorageLimit, h.WhyWatched)
		}
	}
	return nil
}

// hidesNothing checks that what runs below the database makes no subvolume, which no limit would
// count.
func (s *story) hidesNothing(m rig.Member, dir string) {
	s.Helper()
	hidden := filepath.Join(dir, "hidden")
	err := s.asPlatform(m, "COPY (SELECT) TO PROGRAM 'cat >/dev/null; btrfs subvolume create "+hidden+" 2>&1 || touch "+hidden+"-not; exit 0'")
	s.must(err, "run a program below the database")
	if _, err := os.Lstat(hidden + "-not"); err != nil {
		s.Errorf("it is not forbidden to make a subvolume: %v", err)
	}
	if _, err := os.Lstat(hidden); !errors.Is(err, os.ErrNotExist) {
		s.Errorf("a subvolume that nobody counts: %v", err)
	}
}

// stopsForWAL makes a PostgreSQL need another file of WAL that it cannot write. It stops.
func (s *story) stopsForWAL(m rig.Member) {
	s.Helper()
	s.eventually(60*time.Second, func() error {
		if err := s.asPlatform(m, "SELECT txid_current(), pg_switch_wal()"); err == nil {
			return errors.New("it goes on")
		}
		return nil
	})
}

// fillsUp writes until the file system takes no more.
func (s *story) fillsUp(shell func(string) (string, error), dir string) {
	s.Helper()
	out, err := shell("mkdir -p " + dir + "/rubbish && cd " + dir + `/rubbish || exit 7
for size in 1G 16M; do n=0; while fallocate -l $size $size-$n; do n=$((n+1)); done; done
exec cat /dev/zero > last`)
	if err == nil || !strings.HasSuffix(strings.TrimSpace(out), "Disk quota exceeded") {
		s.Fatalf("it writes until %v: %s", err, out)
	}
}
