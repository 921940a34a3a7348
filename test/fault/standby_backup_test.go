package fault

import (
	"fmt"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/model/backup"
	"howdah/internal/state"
	"howdah/internal/testkit/depth"
)

// The primary is killed while the files of its standby are copied, so that these are of two branches.
// The snapshot is made all the same, and what is restored of it has what was acknowledged before.
func TestAStandbyIsPromotedWhileItIsBackedUp(t *testing.T) {
	depth.Deep(t)
	s := begin(t, nil)
	s.repository()
	s.must(s.rig.AskWith(s.Context(), "orders", func(in *rds.CreateDBInstanceMessage) {
		in.MultiAZ, in.BackupRetentionPeriod = new(true), new(int32(1))
	}), "ask for orders")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 2*time.Minute), "orders")
	id, err := s.rig.Database(s.Context(), "orders")
	s.must(err, "find orders")
	s.snapshot("orders", "base") // the first backup is over
	// It takes a while to copy, as it does not get small when it is compressed.
	s.must(s.exec("orders", "CREATE TABLE entries AS SELECT n AS seq, (SELECT string_agg(md5(random()::text || k), '') FROM generate_series(1, 30) k) AS what FROM generate_series(1, 100000) n"), "write")
	s.must(s.exec("orders", "CREATE INDEX ON entries (seq)"), "write an index")
	s.eventually(time.Minute, func() error { return s.rig.InSync(s.Context(), id, 1) })

	old := s.leader(id)
	in := &rds.CreateDBSnapshotMessage{DBInstanceIdentifier: new("orders"), DBSnapshotIdentifier: new("mid")}
	s.must(s.rig.Call(s.Context(), "CreateDBSnapshot", in, &rds.CreateDBSnapshotResult{}), "ask for a snapshot")
	s.eventually(time.Minute, func() error {
		if len(s.commands()["backup"]) == 0 {
			return fmt.Errorf("nothing is copied: %v", s.commands())
		}
		return nil
	})
	s.must(old.KillPostgres(), "kill the primary")
	s.eventually(time.Minute, func() error {
		if now := s.leaderSoon(id); now.Name == old.Name {
			return fmt.Errorf("%s leads", now.Name)
		}
		return s.exec("orders", "INSERT INTO entries VALUES (0, 'later')")
	})
	s.eventually(4*time.Minute, func() error {
		var out rds.DBSnapshotMessage
		err := s.rig.Call(s.Context(), "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: new("mid")}, &out)
		if err == nil && *out.DBSnapshots[0].Status != "available" {
			err = fmt.Errorf("the snapshot is %s", *out.DBSnapshots[0].Status)
		}
		return err
	})
	s.must(s.rig.Call(s.Context(), "RestoreDBInstanceFromDBSnapshot", &rds.RestoreDBInstanceFromDBSnapshotMessage{
		DBInstanceIdentifier: new("back"), DBSnapshotIdentifier: new("mid"), MultiAZ: new(false), BackupRetentionPeriod: new(int32(0)),
	}, &rds.RestoreDBInstanceFromDBSnapshotResult{}), "restore")
	s.must(s.rig.WaitStatus(s.Context(), "back", "available", 3*time.Minute), "back")
	sums := "SELECT count(*) || ' ' || sum(hashtext(what)::bigint) FROM entries WHERE seq > 0"
	want, err := s.query("orders", sums)
	s.must(err, "read orders")
	if got, err := s.query("back", sums); err != nil || got != want {
		t.Errorf("restored %q, want %q: %v", got, want, err)
	}
}

// standbysBackedUp returns how many backups of a database were made of a standby.
func (s *story) standbysBackedUp(id string) (n int) {
	s.Helper()
	all, err := state.List[backup.Backup](s.Context(), s.rig.Store, state.BackupPrefix(id))
	s.must(err, "list backups")
	for _, r := range all {
		if r.Value.Standby {
			n++
		}
	}
	return n
}
