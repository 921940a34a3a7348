package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"howdah/api/rds"
	"howdah/internal/testkit/ack"
)

// Rows are written through failovers, snapshots and backups. Whatever moment is restored afterwards,
// the new database has all that was acknowledged by then, and nothing that was begun later.
func TestAMomentIsRestoredExactly(t *testing.T) {
	s := begin(t, nil)
	s.repository()
	s.must(s.rig.AskWith(s.Context(), "orders", func(in *rds.CreateDBInstanceMessage) {
		in.MultiAZ, in.BackupRetentionPeriod = new(true), new(int32(1))
	}), "ask for orders")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 2*time.Minute), "orders")
	id, err := s.rig.Database(s.Context(), "orders")
	s.must(err, "find orders")
	s.eventually(2*time.Minute, func() error { return s.restorable("orders", time.Now().Add(-time.Hour)) })
	config, err := s.rig.Config(s.Context(), "orders")
	s.must(err, "find the endpoint of orders")
	l := &ack.Load{Config: config, Table: "entries", Writers: 3, Pause: 20 * time.Millisecond}
	s.must(l.Prepare(s.Context()), "prepare the load")
	ctx, cancel := context.WithCancel(s.Context())
	var writing sync.WaitGroup
	writing.Go(func() { l.Run(ctx) })
	defer func() { cancel(); writing.Wait() }()
	began := time.Now()

	s.writes(l, 3*time.Second)
	s.snapshot("orders", "one")
	s.eventually(time.Minute, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.must(s.leader(id).KillPostgres(), "kill the primary")
	s.writes(l, 5*time.Second)
	s.snapshot("orders", "two")
	s.eventually(time.Minute, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.must(s.leader(id).Lose(), "lose the primary's host")
	s.writes(l, 5*time.Second)
	ended := time.Now()
	cancel()
	writing.Wait()
	s.eventually(2*time.Minute, func() error { return s.restorable("orders", ended) })

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var restores errgroup.Group
	restores.SetLimit(3)
	moments := []time.Time{ended}
	for range 11 {
		moments = append(moments, began.Add(time.Duration(random.Int64N(int64(ended.Sub(began))))).Truncate(time.Microsecond))
	}
	for n, at := range moments {
		restores.Go(func() error { return s.restoredExactly(fmt.Sprintf("back-%d", n), at, l) })
	}
	s.must(restores.Wait(), "restore moments")
	for n, name := range []string{"one", "two"} {
		target := fmt.Sprintf("snap-%d", n)
		in := &rds.RestoreDBInstanceFromDBSnapshotMessage{DBInstanceIdentifier: &target, DBSnapshotIdentifier: &name}
		s.must(s.rig.Call(s.Context(), "RestoreDBInstanceFromDBSnapshot", in, &rds.RestoreDBInstanceFromDBSnapshotResult{}), "restore "+name)
		s.must(s.rig.WaitStatus(s.Context(), target, "available", 2*time.Minute), target)
		s.must(s.takesWrites(target), "write to "+target)
	}
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
	in := &rds.CreateDBSnapshotMessage{DBInstanceIdentifier: &of, DBSnapshotIdentifier: &name}
	s.must(s.rig.Call(s.Context(), "CreateDBSnapshot", in, &rds.CreateDBSnapshotResult{}), "ask for the snapshot "+name)
	s.eventually(2*time.Minute, func() error {
		var out rds.DBSnapshotMessage
		err := s.rig.Call(s.Context(), "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: &name}, &out)
		if err == nil && *out.DBSnapshots[0].Status != "available" {
			err = fmt.Errorf("the snapshot %s is %s", name, *out.DBSnapshots[0].Status)
		}
		return err
	})
}

// restoredExactly restores orders to a moment, and compares what the new database has with what was
// acknowledged. Times of acknowledgements are of the same clock as those of commits.
func (s *story) restoredExactly(target string, at time.Time, l *ack.Load) error {
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
	there, err := s.entries(target)
	if err != nil {
		return err
	}
	known := 0
	for _, a := range l.Acks() {
		row := [2]int64{int64(a.Writer), a.Seq}
		switch {
		case a.At.Before(at) && !there[row]:
			s.Errorf("%s: row %v is missing, which was acknowledged at %s", at, row, a.At)
		case a.Began.After(at) && there[row]:
			s.Errorf("%s: row %v is there, which was begun at %s", at, row, a.Began)
		}
		if there[row] {
			known++
		}
	}
	s.Logf("%s: %d rows, %d of them acknowledged", at, len(there), known)
	if err := s.takesWrites(target); err != nil {
		return err
	}
	drop := &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &target, SkipFinalSnapshot: new(true)}
	return s.rig.Call(s.Context(), "DeleteDBInstance", drop, &rds.DeleteDBInstanceResult{})
}

// entries returns the rows that a database has.
func (s *story) entries(name string) (map[[2]int64]bool, error) {
	conn, err := s.login(name)
	if err != nil {
		return nil, err
	}
	defer conn.Close(s.Context())
	rows, err := conn.Query(s.Context(), "SELECT writer, seq FROM entries")
	if err != nil {
		return nil, err
	}
	there := map[[2]int64]bool{}
	var row [2]int64
	_, err = pgx.ForEachRow(rows, []any{&row[0], &row[1]}, func() error { there[row] = true; return nil })
	return there, err
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
