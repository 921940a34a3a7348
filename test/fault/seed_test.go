package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/model/member"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/pgversion"
)

// The standby of a restored database, and one that comes later, are made of backups: no primary is
// asked for its files, as its log would say. If the engine is killed meanwhile, the primary is copied.
func TestStandbysAreMadeOfBackups(t *testing.T) {
	depth.One(t, longest...)
	s := begin(t, nil)
	s.repository()
	s.logged("logged")
	s.must(s.rig.AskWith(s.Context(), "orders", func(in *rds.CreateDBInstanceMessage) {
		in.DBParameterGroupName, in.BackupRetentionPeriod = new("logged"), new(int32(1))
	}), "ask for orders")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 2*time.Minute), "orders")
	s.must(s.exec("orders", "CREATE TABLE entries AS SELECT n AS seq, repeat('x', 500) AS what FROM generate_series(1, 200000) n"), "write")
	s.snapshot("orders", "base")
	orders, err := s.rig.Database(s.Context(), "orders")
	s.must(err, "find orders")

	began := time.Now()
	s.must(s.rig.Call(s.Context(), "RestoreDBInstanceFromDBSnapshot", &rds.RestoreDBInstanceFromDBSnapshotMessage{
		DBInstanceIdentifier: new("back"), DBSnapshotIdentifier: new("base"), MultiAZ: new(true), BackupRetentionPeriod: new(int32(1)),
		DBParameterGroupName: new("logged"),
	}, &rds.RestoreDBInstanceFromDBSnapshotResult{}), "restore")
	s.must(s.rig.WaitStatus(s.Context(), "back", "available", 2*time.Minute), "back")
	available := time.Since(began)
	back, err := s.rig.Database(s.Context(), "back")
	s.must(err, "find back")
	s.eventually(3*time.Minute, func() error { return s.rig.InSync(s.Context(), back, 1) })
	s.Logf("available after %s, and with a standby in sync after %s", available.Round(time.Second), time.Since(began).Round(time.Second))
	s.must(s.copied(back, 0), "the standby of the restored database")
	s.must(s.leader(back).KillPostgres(), "kill the restored primary")
	s.eventually(time.Minute, func() error { return s.rig.InSync(s.Context(), back, 1) })
	s.eventually(time.Minute, func() error {
		n, err := s.query("back", "SELECT count(*)::text FROM entries")
		if err == nil && n != "200000" {
			s.Errorf("it has %s rows", n)
		}
		return err
	})

	multiAZ := func(on bool) {
		s.asks(30*time.Second, "ModifyDBInstance", &rds.ModifyDBInstanceMessage{
			DBInstanceIdentifier: new("orders"), MultiAZ: &on, ApplyImmediately: new(true),
		}, &rds.ModifyDBInstanceResult{})
	}
	multiAZ(true)
	s.eventually(2*time.Minute, func() error { return s.rig.InSync(s.Context(), orders, 1) })
	s.must(s.copied(orders, 0), "a standby that came later")
	// Where its newest report has not come yet, the primary is backed up in its place.
	for try := 1; s.standbysBackedUp(orders) == 0; try++ {
		if try > 3 {
			t.Fatal("no backup was made of the standby")
		}
		s.snapshot("orders", fmt.Sprintf("of-standby-%d", try))
	}

	multiAZ(false)
	s.eventually(time.Minute, func() error {
		if all, err := s.rig.Members(s.Context(), orders); err != nil || len(all) != 1 {
			return fmt.Errorf("%d members: %w", len(all), err)
		}
		return nil
	})
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", time.Minute), "orders without a standby")
	multiAZ(true)
	killed := false
	s.eventually(2*time.Minute, func() error {
		if pids := s.commands()["restore"]; len(pids) > 0 && !killed {
			killed = true
			kill(pids)
		}
		return s.rig.InSync(s.Context(), orders, 1)
	})
	if want := map[bool]int{true: 1}[killed]; s.copied(orders, want) != nil {
		s.Errorf("the engine was killed: %v, %v", killed, s.copied(orders, want))
	}
	if left, err := filepath.Glob(filepath.Join(s.rig.Home.HostDir("*"), "members", "*", "seed", "data")); err != nil || len(left) > 0 {
		s.Errorf("what was half made is left: %q, %v", left, err)
	}
}

// logged makes a parameter group by which servers log who copies them.
func (s *story) logged(group string) {
	s.Helper()
	s.asks(time.Minute, "CreateDBParameterGroup", &rds.CreateDBParameterGroupMessage{
		DBParameterGroupName: &group, DBParameterGroupFamily: new(fmt.Sprintf("postgres%d", pgversion.Major())), Description: new("of a story"),
	}, &rds.CreateDBParameterGroupResult{})
	s.asks(time.Minute, "ModifyDBParameterGroup", &rds.ModifyDBParameterGroupMessage{
		DBParameterGroupName: &group,
		Parameters:           []rds.Parameter{{ParameterName: new("log_replication_commands"), ParameterValue: new("1"), ApplyMethod: new("immediate")}},
	}, &rds.DBParameterGroupNameMessage{})
}

// copied expects that members of a database have sent all their files so often.
func (s *story) copied(database string, want int) error {
	logs, err := filepath.Glob(filepath.Join(s.rig.Home.HostDir("*"), "members", member.ID(database, "*"), "log", "*"))
	if err != nil {
		return err
	}
	n, asked := 0, 0
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n += strings.Count(string(text), "received replication command: BASE_BACKUP")
		asked += strings.Count(string(text), "received replication command: START_REPLICATION")
	}
	if n != want || asked == 0 {
		return fmt.Errorf("members of %s were copied %d times, want %d; they were streamed from %d times: %w", database, n, want, asked, errCopied)
	}
	return nil
}

var errCopied = errors.New("the logs say so")
