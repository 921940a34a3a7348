package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/past"
	"howdah/internal/testkit/pgversion"
)

// history is what is done with orders, and what it wrote. One writer commits row after row, so the
// order of commits is that of their times.
type history struct {
	s      *story
	id     string
	load   *ack.Load
	stop   func()
	random *rand.Rand
	past   *past.Past
	// commits has the time of each row's commit, and ordered the times in their order.
	commits map[int64]time.Time
	ordered []time.Time
	first   time.Time // that can be restored
	// breaks is when a primary was lost. What was committed around it may have been given up.
	breaks []time.Time
}

// event is something that is done while rows are written.
type event struct {
	name string
	do   func()
}

// history makes orders, and begins to write.
func (s *story) history() *history {
	s.Helper()
	seed := uint64(time.Now().UnixNano())
	s.Logf("seed %d", seed)
	h := &history{s: s, random: rand.New(rand.NewPCG(seed, 0)), commits: map[int64]time.Time{}}
	s.must(s.rig.Call(s.Context(), "CreateDBParameterGroup", &rds.CreateDBParameterGroupMessage{
		DBParameterGroupName: new("timed"), DBParameterGroupFamily: new(fmt.Sprintf("postgres%d", pgversion.Major())), Description: new("x"),
	}, &rds.CreateDBParameterGroupResult{}), "make a parameter group")
	s.asks(30*time.Second, "ModifyDBParameterGroup", &rds.ModifyDBParameterGroupMessage{
		DBParameterGroupName: new("timed"), Parameters: []rds.Parameter{{
			ParameterName: new("track_commit_timestamp"), ParameterValue: new("1"), ApplyMethod: new("pending-reboot"),
		}},
	}, &rds.DBParameterGroupNameMessage{})
	s.must(s.rig.AskWith(s.Context(), "orders", func(in *rds.CreateDBInstanceMessage) {
		in.MultiAZ, in.BackupRetentionPeriod, in.DBParameterGroupName = new(true), new(int32(1)), new("timed")
	}), "ask for orders")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 2*time.Minute), "orders")
	var err error
	h.id, err = s.rig.Database(s.Context(), "orders")
	s.must(err, "find orders")
	s.eventually(2*time.Minute, func() error { return s.restorable("orders", time.Now().Add(-time.Hour)) })
	config, err := s.rig.Config(s.Context(), "orders")
	s.must(err, "find the endpoint of orders")
	h.load = &ack.Load{Config: config, Table: "entries", Writers: 1, Pause: 5 * time.Millisecond}
	s.must(h.load.Prepare(s.Context()), "prepare the load")
	h.first = time.Now()
	ctx, cancel := context.WithCancel(s.Context())
	var writing sync.WaitGroup
	writing.Go(func() { h.load.Run(ctx) })
	h.stop = func() { cancel(); writing.Wait() }
	s.Cleanup(h.stop)
	return h
}

// drawn returns what is done, in a random order, and the loss of a host at the end.
func (h *history) drawn() []event {
	all := []event{
		{"a snapshot", func() { h.s.snapshot("orders", "one") }},
		{"a snapshot that is deleted", func() { h.s.snapshot("orders", "gone"); h.deleted("gone") }},
		{"the primary is killed", func() { h.lose(func() error { return h.s.leader(h.id).KillPostgres() }) }},
		{"a planned failover", h.handOver},
	}
	all = append(depth.Some(h.s, 2, all), event{"the primary is killed amid a backup", h.amid})
	h.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return append(all, event{"the primary's host is lost", func() { h.lose(func() error { return h.s.leader(h.id).Lose() }) }})
}

// lose loses the primary once its standby is in sync.
func (h *history) lose(how func() error) {
	h.s.Helper()
	h.s.eventually(time.Minute, func() error { return h.s.rig.InSync(h.s.Context(), h.id, 1) })
	h.breaks = append(h.breaks, time.Now())
	h.s.must(how(), "lose the primary")
	h.s.writes(h.load, 0)
	h.breaks = append(h.breaks, time.Now())
}

// amid kills the primary as soon as a backup is made.
func (h *history) amid() {
	h.s.Helper()
	h.s.asksForSnapshot("orders", "amid")
	h.s.eventually(time.Minute, func() error {
		if len(h.s.commands()["backup"]) == 0 {
			return errors.New("no backup is made")
		}
		return nil
	})
	h.lose(func() error { return h.s.leader(h.id).KillPostgres() })
	h.s.eventually(2*time.Minute, func() error {
		var out rds.DBSnapshotMessage
		err := h.s.rig.Call(h.s.Context(), "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: new("amid")}, &out)
		if err == nil && *out.DBSnapshots[0].Status != "available" {
			err = fmt.Errorf("it is %s", *out.DBSnapshots[0].Status)
		}
		return err
	})
}

func (h *history) handOver() {
	h.s.Helper()
	h.s.eventually(time.Minute, func() error { return h.s.rig.InSync(h.s.Context(), h.id, 1) })
	was := h.s.leader(h.id).Name
	in := &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new("orders"), ForceFailover: new(true)}
	h.s.must(h.s.rig.Call(h.s.Context(), "RebootDBInstance", in, &rds.RebootDBInstanceResult{}), "reboot with failover")
	h.s.eventually(time.Minute, func() error {
		m, err := h.s.rig.Leader(h.s.Context(), h.id)
		if err == nil && m.Name == was {
			err = fmt.Errorf("%s leads", was)
		}
		return err
	})
}

// deleted deletes a snapshot. The next tidy removes its backup, unless another one was built upon it.
func (h *history) deleted(name string) {
	h.s.Helper()
	in := &rds.DeleteDBSnapshotMessage{DBSnapshotIdentifier: &name}
	h.s.must(h.s.rig.Call(h.s.Context(), "DeleteDBSnapshot", in, &rds.DeleteDBSnapshotResult{}), "delete "+name)
}

// end stops writing, and looks when what was committed.
func (h *history) end() {
	h.s.Helper()
	ended := time.Now()
	h.stop()
	h.s.archived("orders", ended)
	dir := filepath.Join(h.s.rig.Dir, "p")
	h.s.must(os.Mkdir(dir, 0o755), "make a directory")
	var err error
	h.past, err = past.Open(h.s.Context(), past.Config{
		Binary: binary, Home: h.s.rig.Home.Dir, Name: "main", Store: h.s.rig.Store, Repository: filepath.Join(h.s.rig.Dir, "repository"),
		Database: h.id, Major: pgversion.Major(), Dir: dir, DBName: h.load.Config.Database,
	})
	h.s.must(err, "copy the repository")
	_, err = h.past.Look(h.s.Context(), time.Time{}, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT seq, pg_xact_commit_timestamp(xmin) FROM public.entries ORDER BY 2")
		if err != nil {
			return err
		}
		var seq int64
		var at time.Time
		_, err = pgx.ForEachRow(rows, []any{&seq, &at}, func() error {
			h.commits[seq] = at
			h.ordered = append(h.ordered, at)
			return nil
		})
		return err
	})
	h.s.must(err, "restore all there is")
	for _, a := range h.load.Acks() {
		if at, ok := h.commits[a.Seq]; !ok || at.Before(a.Began.Add(-time.Millisecond)) || at.After(a.At.Add(time.Millisecond)) {
			h.s.Fatalf("row %d was acknowledged at %s, and committed at %s (%t)", a.Seq, a.At, at, ok)
		}
	}
	h.s.Logf("%d rows, %d backups", len(h.ordered), len(h.past.Backups))
}

// moment draws one between the first row and the last: any, or one at a commit or beside it.
func (h *history) moment() time.Time {
	from, to := h.ordered[0], h.ordered[len(h.ordered)-1]
	if h.random.IntN(2) == 0 {
		return from.Add(time.Duration(h.random.Int64N(int64(to.Sub(from))))).Truncate(time.Microsecond)
	}
	return h.ordered[h.random.IntN(len(h.ordered)-1)].Add(time.Duration(h.random.IntN(3)-1) * time.Microsecond)
}

// moments draws so many.
func (h *history) moments(number int) []time.Time {
	var all []time.Time
	for range number {
		all = append(all, h.moment())
	}
	return all
}

// compare looks whether rows are exactly those that were committed by a moment.
func (h *history) compare(at time.Time, rows []int64) {
	there := map[int64]bool{}
	for _, seq := range rows {
		there[seq] = true
		if committed, ok := h.commits[seq]; !ok || committed.After(at) {
			h.s.Errorf("%s: row %d is there, which was committed at %s (%t)", at, seq, committed, ok)
		}
	}
	for seq, committed := range h.commits {
		if !committed.After(at) && !there[seq] {
			h.s.Errorf("%s: row %d is missing, which was committed at %s", at, seq, committed)
		}
	}
}

// restored restores a moment by the host's own code, as no database of the home, and looks what it has.
func (h *history) restored(at time.Time) error {
	var rows []int64
	began := time.Now()
	_, err := h.past.Look(h.s.Context(), at, func(ctx context.Context, conn *pgx.Conn) error {
		found, err := conn.Query(ctx, "SELECT seq FROM public.entries")
		if err == nil {
			rows, err = pgx.CollectRows(found, pgx.RowTo[int64])
		}
		return err
	})
	switch {
	case err != nil && strings.Contains(err.Error(), "branch that was abandoned") && h.unclear(at):
		h.s.Logf("%s is refused: %v", at, err)
		return nil
	case err != nil:
		return fmt.Errorf("restore %s: %w", at, err)
	}
	h.compare(at, rows)
	h.s.Logf("%s: %d rows, in %.1f s", at.Format("15:04:05.000000"), len(rows), time.Since(began).Seconds())
	return nil
}

// unclear reports whether a moment is one at which a primary was being replaced.
func (h *history) unclear(at time.Time) bool {
	for n := 0; n+1 < len(h.breaks); n += 2 {
		if at.After(h.breaks[n].Add(-time.Second)) && at.Before(h.breaks[n+1].Add(time.Second)) {
			return true
		}
	}
	return false
}
