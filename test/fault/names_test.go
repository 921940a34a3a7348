package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/edge/seen"
	"howdah/internal/failover/fence"
	"howdah/internal/state"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/patience"
)

// A read replica streams from the primary beside the standby. Whichever member leads, the standby
// is soon in sync, the replica goes on, and a commit waits for the standby: what the replica
// confirms counts for nothing.
func TestAReadReplicaIsNotTakenForTheStandby(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	s.must(s.rig.Replica(s.Context(), "orders-read", "orders", false), "make a read replica")
	w := s.writing("orders")
	for range 2 {
		s.failsOver("orders", id)
		s.eventually(20*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
		s.follows("orders", "orders-read")
		s.commitsWaitForTheStandby("orders", id)
		s.eventually(30*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	}
	w.works(5 * time.Second)
	w.nothingLost()
}

// failsOver asks for a failover as users do, and waits for it.
func (s *story) failsOver(name, id string) {
	s.Helper()
	old := s.leader(id).Name
	in := &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &name, ForceFailover: new(true)}
	s.must(s.rig.Call(s.Context(), "RebootDBInstance", in, &rds.RebootDBInstanceResult{}), "ask for a failover")
	s.eventually(30*time.Second, func() error {
		l, err := fence.Read(s.Context(), s.rig.Store.Client, id)
		if err == nil && (l.Leader == "" || l.Leader == old) {
			err = fmt.Errorf("%q leads", l.Leader)
		}
		return err
	})
	s.must(s.rig.WaitStatus(s.Context(), name, "available", 30*time.Second), "wait for "+name)
}

// follows checks that a row which is written now arrives at a replica.
func (s *story) follows(source, replica string) {
	s.Helper()
	mark := fmt.Sprint(time.Now().UnixNano())
	s.must(s.exec(source, "CREATE TABLE mark_"+mark+" ()"), "write a mark")
	s.eventually(20*time.Second, func() error {
		_, err := s.query(replica, "SELECT count(*)::text FROM mark_"+mark)
		return err
	})
}

// exec runs one statement through the endpoint of an instance, however long it waits.
func (s *story) exec(name, sql string) error {
	config, err := s.rig.Config(s.Context(), name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience.For(30*time.Second))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// commitsWaitForTheStandby freezes the standby's host. As long as Patroni counts on it, no commit
// may be acknowledged. When one is, the sync key must no longer name it.
func (s *story) commitsWaitForTheStandby(name, id string) {
	s.Helper()
	standby := s.standby(id)
	s.must(standby.Freeze(), "freeze the standby")
	defer standby.Thaw()
	s.must(s.exec(name, fmt.Sprintf("CREATE TABLE waits_%d ()", time.Now().UnixNano())), "commit without the standby")
	l, err := fence.Read(s.Context(), s.rig.Store.Client, id)
	s.must(err, "read who is in sync")
	if slices.Contains(l.Sync.Standbys, standby.Name) {
		s.Errorf("a commit was acknowledged while %s was frozen and counted as in sync: %+v", standby.Name, l.Sync)
	}
	s.must(standby.Thaw(), "thaw the standby")
}

// olderEdge stands for an edge of an older release, which does not know members by names of their
// own. While there is one, members are called as that release called them.
const olderEdge = "older"

// Read replicas of an older release have members with the same names as their source's. They are
// renamed one by one, and nobody's connection is broken: neither the writers' nor those of the
// replicas' readers.
func TestMembersOfReadReplicasGetNamesOfTheirOwn(t *testing.T) {
	depth.Deep(t)
	s := begin(t, nil)
	_, err := s.rig.Store.Commit(s.Context(), state.Put(state.Edge(olderEdge), seen.Status{Name: olderEdge}))
	s.must(err, "pretend that there is an older edge")
	id := s.given("orders", true)
	s.must(s.rig.Replica(s.Context(), "orders-read", "orders", true), "make a read replica with a standby")
	s.must(s.rig.Replica(s.Context(), "orders-far", "orders-read", false), "make a replica of the replica")
	replica, err := s.rig.Database(s.Context(), "orders-read")
	s.must(err, "find the replica")
	far, err := s.rig.Database(s.Context(), "orders-far")
	s.must(err, "find the replica's replica")
	own, first, second := s.standby(id).Name, s.leader(replica).Name, s.standby(replica).Name
	s.eventually(10*time.Second, func() error { return s.streamAs("orders", own, first) })

	w := s.writing("orders")
	readers := []*reader{s.reading("orders-read"), s.reading("orders-far")}
	_, err = s.rig.Store.Commit(s.Context(), state.Delete(state.Edge(olderEdge)))
	s.must(err, "take the older edge away")
	s.eventually(90*time.Second, func() error { return s.streamAs("orders", own, replica+"."+first) })
	s.eventually(90*time.Second, func() error { return s.streamAs("orders-read", replica+"."+second, far+".m1") })
	s.eventually(20*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	for _, r := range readers {
		r.sawNoOutage()
	}
	s.follows("orders", "orders-far")
	if errs := w.load.Errors(); len(errs) > 0 {
		t.Errorf("writers saw %v", errs)
	}
	s.failsOver("orders", id)
	s.eventually(20*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.follows("orders", "orders-far")
	w.nothingLost()
}

// streamAs returns nil if WAL goes to receivers of these names, and to no others, from the member
// that serves an instance.
func (s *story) streamAs(name string, receivers ...string) error {
	got, err := s.query(name, "SELECT string_agg(application_name, ' ') FROM pg_stat_replication WHERE state = 'streaming'")
	if err != nil {
		return err
	}
	now := strings.Fields(got)
	slices.Sort(now)
	slices.Sort(receivers)
	if !slices.Equal(now, receivers) {
		err = fmt.Errorf("%q stream from %s, not %q", now, name, receivers)
	}
	return err
}

// reader keeps one connection to an instance open and reads all the time.
type reader struct {
	s      *story
	name   string
	stop   context.CancelFunc
	failed chan error
	reads  int
}

func (s *story) reading(name string) *reader {
	s.Helper()
	config, err := s.rig.Config(s.Context(), name)
	s.must(err, "find the endpoint")
	ctx, cancel := context.WithCancel(s.Context())
	conn, err := pgx.ConnectConfig(ctx, config)
	s.must(err, "connect to "+name)
	r := &reader{s: s, name: name, stop: cancel, failed: make(chan error, 1)}
	go func() {
		defer conn.Close(context.Background())
		var n int
		for ctx.Err() == nil && err == nil {
			err = conn.QueryRow(ctx, "SELECT 1").Scan(&n)
			r.reads++
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
		if ctx.Err() != nil {
			err = nil
		}
		r.failed <- err
	}()
	s.Cleanup(cancel)
	return r
}

// sawNoOutage ends the reader. Its one connection must have worked all the time.
func (r *reader) sawNoOutage() {
	r.s.Helper()
	r.stop()
	if err := <-r.failed; err != nil || r.reads == 0 {
		r.s.Errorf("the reader of %s was disturbed after %d reads: %v", r.name, r.reads, err)
	}
}
