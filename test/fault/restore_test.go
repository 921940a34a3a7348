package fault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"howdah/api/rds"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/depth"
)

// Rows are written through random failovers, backups and retention runs, of which one failover is in the
// middle of a backup. Whatever moment is restored afterwards, to the microsecond, there is exactly what
// was committed by then.
func TestAMomentIsRestoredExactly(t *testing.T) {
	s := begin(t, nil)
	s.repository()
	h := s.history()
	for _, event := range h.drawn() {
		s.Logf("%s", event.name)
		s.writes(h.load, time.Duration(1+h.random.IntN(3))*time.Second)
		event.do()
	}
	s.writes(h.load, 3*time.Second)
	h.end()

	var restores errgroup.Group
	restores.SetLimit(4)
	const whole, all = 3, 30
	for n, at := range depth.Some(s, all/3, h.moments(all)) {
		restores.Go(func() error {
			if n < whole {
				return s.restoredExactly(fmt.Sprintf("back-%d", n), at, h)
			}
			return h.restored(at)
		})
	}
	s.must(restores.Wait(), "restore moments")
	s.must(s.rig.Call(s.Context(), "RestoreDBInstanceFromDBSnapshot", &rds.RestoreDBInstanceFromDBSnapshotMessage{
		DBInstanceIdentifier: new("of-snapshot"), DBSnapshotIdentifier: new("amid"),
	}, &rds.RestoreDBInstanceFromDBSnapshotResult{}), "restore a snapshot")
	s.must(s.rig.WaitStatus(s.Context(), "of-snapshot", "available", 2*time.Minute), "of-snapshot")
	s.must(s.takesWrites("of-snapshot"), "write to it")
}

// repository gives the home a repository for the backups of all databases.
func (s *story) repository() {
	s.Helper()
	dir := filepath.Join(s.rig.Dir, "repository")
	s.must(os.Mkdir(dir, 0o700), "make a directory for backups")
	out, err := exec.CommandContext(s.Context(), binary, "--home", s.rig.Home.Dir, "repository", "add", "main", "--directory", dir, "--default").CombinedOutput()
	if err != nil {
		s.Fatalf("add a repository: %v\n%s", err, out)
	}
}

// restorable returns nil once a database can be restored to a moment.
func (s *story) restorable(name string, at time.Time) error {
	i, err := s.rig.Instance(s.Context(), name)
	if err != nil {
		return err
	}
	if i.LatestRestorableTime == nil || i.LatestRestorableTime.Before(at) {
		return fmt.Errorf("%s can be restored until %v, not %s", name, i.LatestRestorableTime, at)
	}
	return nil
}

// archived waits until a database can be restored to a moment that has just been. It ends a file of WAL
// now and then, for which the server itself would wait a minute.
func (s *story) archived(name string, at time.Time) {
	s.Helper()
	id, err := s.rig.Database(s.Context(), name)
	s.must(err, "find "+name)
	var ended time.Time
	s.eventually(2*time.Minute, func() error {
		err := s.restorable(name, at)
		if err == nil || time.Since(ended) < 5*time.Second {
			return err
		}
		ended = time.Now()
		return errors.Join(err, s.asPlatform(s.leader(id), "SELECT pg_switch_wal()"))
	})
}

// writes waits until a load has been acknowledged something for a while.
func (s *story) writes(l *ack.Load, long time.Duration) {
	s.Helper()
	from := time.Now().Add(long)
	s.eventually(time.Minute, func() error {
		acks := l.Acks()
		if len(acks) == 0 || acks[len(acks)-1].At.Before(from) {
			return fmt.Errorf("nothing was acknowledged after %s: %q", from, l.Errors())
		}
		return nil
	})
}

// snapshot makes a snapshot, and waits until it is available.
func (s *story) snapshot(of, name string) {
	s.Helper()
	s.asksForSnapshot(of, name)
	s.eventually(2*time.Minute, func() error {
		var out rds.DBSnapshotMessage
		err := s.rig.Call(s.Context(), "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: &name}, &out)
		if err == nil && *out.DBSnapshots[0].Status != "available" {
			err = fmt.Errorf("the snapshot %s is %s", name, *out.DBSnapshots[0].Status)
		}
		return err
	})
}

// asksForSnapshot asks again as long as a change has not ended: what is waited for may come a bit before that.
func (s *story) asksForSnapshot(of, name string) {
	s.Helper()
	in := &rds.CreateDBSnapshotMessage{DBInstanceIdentifier: &of, DBSnapshotIdentifier: &name}
	s.asksAgain(rds.ErrInvalidDBInstanceState, "CreateDBSnapshot", in, &rds.CreateDBSnapshotResult{})
}

// asksAgain calls an action again as long as it is refused with one code, for a minute.
func (s *story) asksAgain(code, action string, in, out any) {
	s.Helper()
	s.eventually(time.Minute, func() error {
		err := s.rig.Call(s.Context(), action, in, out)
		if err != nil && strings.Contains(err.Error(), code) {
			return err
		}
		s.must(err, action)
		return nil
	})
}

// restoredExactly restores orders to a moment as a database of the home, and looks what it has.
func (s *story) restoredExactly(target string, at time.Time, h *history) error {
	in := &rds.RestoreDBInstanceToPointInTimeMessage{
		SourceDBInstanceIdentifier: new("orders"), TargetDBInstanceIdentifier: &target, RestoreTime: &at, MultiAZ: new(false), BackupRetentionPeriod: new(int32(0)),
	}
	err := s.rig.Call(s.Context(), "RestoreDBInstanceToPointInTime", in, &rds.RestoreDBInstanceToPointInTimeResult{})
	if err == nil {
		err = s.rig.WaitStatus(s.Context(), target, "available", 3*time.Minute)
	}
	if err != nil {
		return fmt.Errorf("restore %s to %s: %w", target, at, err)
	}
	conn, err := s.login(target)
	if err != nil {
		return err
	}
	defer conn.Close(s.Context())
	rows, err := conn.Query(s.Context(), "SELECT seq FROM entries")
	if err != nil {
		return err
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	h.compare(at, there)
	if err := s.takesWrites(target); err != nil {
		return err
	}
	drop := &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &target, SkipFinalSnapshot: new(true)}
	return s.rig.Call(s.Context(), "DeleteDBInstance", drop, &rds.DeleteDBInstanceResult{})
}

func (s *story) login(name string) (*pgx.Conn, error) {
	config, err := s.rig.Config(s.Context(), name)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(s.Context(), config)
}

func (s *story) takesWrites(name string) error {
	conn, err := s.login(name)
	if err != nil {
		return err
	}
	defer conn.Close(s.Context())
	_, err = conn.Exec(s.Context(), "INSERT INTO entries VALUES (-1, 1)")
	return err
}
