package fault

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/depth"
)

// A Multi-AZ instance goes back while it is written to. The control plane is killed whenever the
// operation comes to a step, and all agents while the data are restored. Afterwards the same address and
// password lead to the rows of before the moment alone, writes go on, and the backups that were kept
// have every other row that was acknowledged.
func TestAnInstanceGoesBackInItsPlace(t *testing.T) {
	depth.One(t, longest...)
	s := begin(t, nil)
	s.repository()
	s.must(s.rig.AskWith(s.Context(), "orders", func(in *rds.CreateDBInstanceMessage) {
		in.MultiAZ, in.BackupRetentionPeriod = new(true), new(int32(1))
	}), "ask for orders")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 2*time.Minute), "orders")
	s.eventually(2*time.Minute, func() error { return s.restorable("orders", time.Now().Add(-time.Hour)) })
	before, err := s.rig.Instance(s.Context(), "orders")
	s.must(err, "look at orders")
	w := s.writing("orders")
	w.works(2 * time.Second)
	to := time.Now().Truncate(time.Microsecond)
	w.works(2 * time.Second)
	s.archived("orders", to)

	out, err := s.howdah("db", "rewind", "orders", "--to", to.Format(time.RFC3339Nano), "--yes", "--no-wait", "-o", "json")
	s.must(err, "go back")
	var p admin.RewindPlan
	s.must(json.Unmarshal([]byte(out[max(strings.Index(out, "\n{"), 0):]), &p), "read "+out) // what is lost is told before
	s.killedOnTheWay("rewind")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 2*time.Minute), "orders")
	w.works(20 * time.Second)
	w.stop()
	after, err := s.rig.Instance(s.Context(), "orders")
	s.must(err, "look at orders again")
	if *after.Endpoint.Address != *before.Endpoint.Address || *after.Endpoint.Port != *before.Endpoint.Port || !*after.MultiAZ || *after.DbiResourceId == *before.DbiResourceId {
		t.Errorf("it was %+v, and is %+v", before, after)
	}

	old, lost, since := w.around(to)
	s.hasAll("orders", w.load.Table, slices.Concat(old, since))
	config, err := s.rig.Config(s.Context(), "orders")
	s.must(err, "find the endpoint")
	missing, err := ack.Missing(s.Context(), config, w.load.Table, lost)
	if err != nil || len(missing) != len(lost) {
		t.Errorf("%d rows of after the moment are there still: %v", len(lost)-len(missing), err)
	}
	_, err = s.howdah("db", "restore", "until-the-end", "--from", *before.DbiResourceId, "--latest")
	s.must(err, "restore what was kept")
	s.hasAll("until-the-end", w.load.Table, slices.Concat(old, lost))
	s.snapshotIs(p.Snapshot, "available")
	s.must(s.hasEvent("orders", "has gone back to"), "tell")
	s.eventually(2*time.Minute, func() error { return s.rig.InSync(s.Context(), *after.DbiResourceId, 1) })
}

// around divides what was acknowledged: until a moment, after it, and since writers were let in again.
// A row whose statement went on at the moment may be on either side of it, and is in none.
func (w *writers) around(to time.Time) (old, lost, since []ack.Ack) {
	w.s.Helper()
	acks := w.load.Acks()
	// Nobody is acknowledged anything while it is closed: the longest pause is that.
	gap := 0
	for n := 1; n < len(acks); n++ {
		if acks[n].At.Sub(acks[n-1].At) > acks[max(gap, 1)].At.Sub(acks[max(gap, 1)-1].At) {
			gap = n
		}
	}
	w.s.Logf("of %d rows the last before it was closed was committed at %s, and the next %s later", len(acks), acks[gap-1].At, acks[gap].At.Sub(acks[gap-1].At))
	for n, a := range acks {
		switch {
		case n >= gap && a.Began.After(acks[gap-1].At):
			since = append(since, a)
		case a.At.Before(to):
			old = append(old, a)
		case a.Began.After(to):
			lost = append(lost, a)
		}
	}
	if len(old) == 0 || len(lost) == 0 || len(since) == 0 {
		w.s.Fatalf("%d rows before, %d after, %d since", len(old), len(lost), len(since))
	}
	return old, lost, since
}

// killedOnTheWay kills the control plane at each step of an operation, and all agents when something is
// restored, until the operation has ended.
func (s *story) killedOnTheWay(kind string) {
	s.Helper()
	hit := map[string]bool{}
	s.eventually(4*time.Minute, func() error {
		points, busy := s.points()
		goes := busy && len(points) == 0
		for p := range points {
			goes = goes || strings.HasPrefix(p, kind+" ")
			switch {
			case hit[p]:
			case strings.HasPrefix(p, kind+" "):
				hit[p] = true
				s.must(s.killServe(), "kill the control plane")
			case strings.HasPrefix(p, "restore files"):
				hit[p] = true
				s.must(s.killAgents(), "kill the agents")
			}
		}
		if goes || len(hit) == 0 {
			return fmt.Errorf("it goes on; killed at %v", hit)
		}
		return nil
	})
	s.Logf("killed at %v", hit)
	for _, step := range []string{"snapshot", "close"} {
		if !hit[kind+" "+step] {
			s.Errorf("not killed at %s", step)
		}
	}
}
