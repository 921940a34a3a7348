package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
)

// givenThree makes a cluster of three members, with writers. Any one of its two standbys confirms a
// commit.
func (s *story) givenThree() (database string, w *writers) {
	s.Helper()
	s.must(s.rig.CreateCluster(s.Context(), "fleet", 3), "create the cluster")
	c, err := s.rig.Cluster(s.Context(), "fleet")
	s.must(err, "find the cluster")
	database = *c.DbClusterResourceId
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), database, 2) })
	config, err := s.rig.ClusterConfig(s.Context(), "fleet")
	s.must(err, "find the endpoint")
	return database, s.writingTo(config)
}

// standbys returns the members that do not lead.
func (s *story) standbys(database string) []rig.Member {
	s.Helper()
	leader := s.leader(database)
	all, err := s.rig.Members(s.Context(), database)
	s.must(err, "list members")
	return slices.DeleteFunc(all, func(m rig.Member) bool { return m.Name == leader.Name })
}

// agent sends a signal to the agent of a member's host, and to nothing else there.
func (s *story) agent(m rig.Member, sig syscall.Signal) {
	s.Helper()
	s.must(syscall.Kill(s.rig.PID("agent-"+m.ZoneLetter()), sig), "signal the agent of "+m.Host)
}

// goesOnAtTheElection lets a frozen primary go on at the very moment at which another member gets
// the leader key. It returns that member.
func (s *story) goesOnAtTheElection(old rig.Member, thaw func() error, within time.Duration) (next string) {
	s.Helper()
	key := patroni.LeaderKey(old.Database)
	held, err := s.rig.Store.Client.Get(s.Context(), key)
	s.must(err, "find the leader key")
	watch := s.rig.Store.Client.Watch(s.Context(), key, clientv3.WithRev(held.Header.Revision+1))
	deadline := time.After(within)
	for {
		select {
		case answer := <-watch:
			for _, e := range answer.Events {
				if name := patroni.MemberName(string(e.Kv.Value)); e.Type == clientv3.EventTypePut && name != old.Name {
					s.must(thaw(), "thaw the primary")
					return name
				}
			}
		case <-deadline:
			s.Fatal("nobody was elected")
		}
	}
}

// The next primary is lost a moment after its promotion, while the previous one is back but no
// standby yet. That one never had WAL of the new timeline, so the third member is promoted. It begins
// a timeline of its own, although it may not have heard of the one before.
func TestAloneTwoPrimariesAreLostOneAfterTheOther(t *testing.T) {
	// With networks of their own a cut is between two hosts, as between machines.
	s := alone(t, func(o *rig.Options) { o.Netns, o.Edge = true, []string{"--masquerade"} })
	id, w := s.givenThree()
	first := s.leader(id)
	s.must(first.Freeze(), "freeze the primary's host")
	var sync patroni.Sync
	s.eventually(20*time.Second, func() error {
		l, err := fence.Read(s.Context(), s.rig.Store.Client, id)
		sync = l.Sync
		if err == nil && (sync.Leader == first.Name || len(sync.Standbys) != 1) {
			err = fmt.Errorf("leadership %+v", l)
		}
		return err
	})
	second := s.leader(id)
	began, err := s.timeline(second)
	s.must(err, "ask the next primary for its timeline")
	s.must(second.Freeze(), "freeze the next primary's host")
	s.must(first.Thaw(), "the first host is back")
	s.primary(id, sync.Standbys[0], 15*time.Second)
	w.works(5 * time.Second)
	third, err := s.timeline(s.leader(id))
	s.must(err, "ask the third primary for its timeline")
	taken, err := state.Get[fence.Timeline](s.Context(), s.rig.Store, state.Timeline(id))
	if s.must(err, "read which timeline was taken"); third <= began || third != taken.Value.Number {
		t.Errorf("timelines %d and %d, taken: %+v", began, third, taken.Value)
	}
	s.must(second.Thaw(), "the second host is back")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 2) })
	w.nothingLost()
}

// primary waits until a member is the primary, and takes writes.
func (s *story) primary(database, name string, within time.Duration) {
	s.Helper()
	s.eventually(within, func() error {
		l, err := fence.Read(s.Context(), s.rig.Store.Client, database)
		if err == nil && (l.Leader != name || l.Sync.Leader != name) {
			err = fmt.Errorf("leadership %+v, want %s", l, name)
		}
		return err
	})
}

// settled waits until a member is the primary, as the leader key and the sync key say alike.
func (s *story) settled(database string, within time.Duration) (name string) {
	s.Helper()
	s.eventually(within, func() error {
		l, err := fence.Read(s.Context(), s.rig.Store.Client, database)
		if err == nil && (l.Leader == "" || l.Sync.Leader != l.Leader) {
			err = fmt.Errorf("leadership %+v", l)
		}
		name = l.Leader
		return err
	})
	return name
}

// overtaken waits until another member is the primary, and takes writes.
func (s *story) overtaken(database, old string, within time.Duration) {
	s.Helper()
	s.eventually(within, func() error {
		l, err := fence.Read(s.Context(), s.rig.Store.Client, database)
		if err == nil && (l.Sync.Leader != l.Leader || l.Leader == old || l.Leader == "") {
			err = fmt.Errorf("leadership %+v", l)
		}
		return err
	})
}

// timeline returns the one that a primary writes to.
func (s *story) timeline(m rig.Member) (n int, err error) {
	config, err := s.rig.ConfigAt(m.Address, m.Port)
	if err == nil {
		err = s.answers(config, "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int", &n)
	}
	return n, err
}

// recovers reports whether a member is a standby, as it says itself.
func (s *story) recovers(m rig.Member) (recovery bool, err error) {
	config, err := s.rig.ConfigAt(m.Address, m.Port)
	if err == nil {
		err = s.answers(config, "SELECT pg_is_in_recovery()", &recovery)
	}
	return recovery, err
}

// answers asks a server for one value, and stores it.
func (s *story) answers(config *pgx.ConnConfig, sql string, value any) error {
	ctx, cancel := context.WithTimeout(s.Context(), patience.For(5*time.Second))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql).Scan(value)
}

// patroniLog returns what Patroni of a member has logged.
func (s *story) patroniLog(database, name string) string {
	s.Helper()
	all, err := s.rig.Members(s.Context(), database)
	s.must(err, "list members")
	for _, m := range all {
		if m.Name == name {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(m.DataDir()), patroni.LogDir, "patroni.log"))
			s.must(err, "read Patroni's log")
			return string(text)
		}
	}
	return ""
}

// One standby's agent hangs, and cannot cut the standby off from a primary whose host only stood
// still, and goes on at the moment of the election. Only that standby may be promoted: the one that
// is promoted leaves the old primary, and the other one is cut off.
func TestTheStandbyThatNobodyCutIsPromoted(t *testing.T) {
	s := begin(t, nil)
	id, w := s.givenThree()
	old, others := s.leader(id), s.standbys(id)
	hung, cut := others[0], others[1]
	s.agent(hung, syscall.SIGSTOP)
	defer s.agent(hung, syscall.SIGCONT)
	s.must(old.Freeze(), "freeze the primary's host")
	defer old.Thaw()
	// Its host's agent would end it at once, and prove that. So the agent stands still.
	for try := 1; ; try++ {
		s.goesOnAtTheElection(old, func() error { return old.Signal(syscall.SIGCONT) }, 60*time.Second)
		next := s.settled(id, 60*time.Second)
		if next == hung.Name {
			break
		}
		if next != old.Name || try == 5 {
			s.Fatalf("%s leads after %d elections, want %s", next, try, hung.Name)
		}
		// The other one had the leader key first, and was refused. The old primary had it back before
		// anybody else, so nothing is lost: it goes on. Its host stands still once more.
		s.must(old.Freeze(), "freeze the primary's host again")
	}
	cases, err := state.List[fence.Case](s.Context(), s.rig.Store, state.FencePrefix(id))
	s.must(err, "read the cases")
	// The new primary's agent hangs, too, so there may be a case against that one.
	cases = slices.DeleteFunc(cases, func(c state.Record[fence.Case]) bool { return c.Value.Leadership.Leader != old.Name })
	if len(cases) == 1 && !slices.Equal(cases[0].Value.Candidates, []string{hung.Name}) {
		s.Errorf("by the judge's count %v may be promoted, want %s alone: %s is cut off", cases[0].Value.Candidates, hung.Name, cut.Name)
	}
	s.must(old.Thaw(), "thaw the old primary's host")
	s.agent(hung, syscall.SIGCONT)
	w.works(60 * time.Second)
	s.eventually(90*time.Second, func() error { return s.rig.InSync(s.Context(), id, 2) })
	w.nothingLost()
}

// Nobody can cut either standby off from a primary whose host stands still. Nobody is promoted,
// neither by the judge nor when the lease ends by itself, and status says who would help. As soon
// as one agent answers, the other standby is promoted.
func TestNobodyIsPromotedWithoutACount(t *testing.T) {
	s := begin(t, nil)
	id, w := s.givenThree()
	old, others := s.leader(id), s.standbys(id)
	for _, m := range others {
		s.agent(m, syscall.SIGSTOP)
		defer s.agent(m, syscall.SIGCONT)
	}
	s.must(old.Freeze(), "freeze the primary's host")
	defer old.Thaw()
	// That is two leases long. First came that of the judge's patience in older releases, then that
	// of the lease itself, then that of the first gate.
	s.eventually(90*time.Second, func() error {
		plea, err := state.Get[fence.Plea](s.Context(), s.rig.Store, state.Plea(id))
		if err == nil && !strings.Contains(plea.Value.Why, "may still acknowledge writes") {
			err = fmt.Errorf("it waits because %s", plea.Value.Why)
		}
		return err
	})
	for _, m := range others {
		recovery, err := s.recovers(m)
		s.must(err, "ask "+m.Name)
		if !recovery {
			s.Fatalf("%s was promoted, while %s may confirm what the old primary writes", m.Name, others[0].Name)
		}
	}
	s.eventually(20*time.Second, func() error {
		text, err := exec.CommandContext(s.Context(), binary, "status", "--home", s.rig.Home.Dir).Output()
		if err == nil && !strings.Contains(string(text), "nobody is promoted, so that nothing is lost") {
			err = fmt.Errorf("status says %s", text)
		}
		return err
	})
	s.agent(others[0], syscall.SIGCONT)
	s.overtaken(id, old.Name, 90*time.Second)
	s.must(old.Thaw(), "thaw the primary's host")
	s.agent(others[1], syscall.SIGCONT)
	w.works(60 * time.Second)
	s.eventually(90*time.Second, func() error { return s.rig.InSync(s.Context(), id, 2) })
	w.nothingLost()
	s.eventually(60*time.Second, func() error {
		if plea, err := state.Get[fence.Plea](s.Context(), s.rig.Store, state.Plea(id)); !errors.Is(err, state.ErrNotFound) {
			return fmt.Errorf("the plea is there still: %+v, %w", plea.Value, err)
		}
		return nil
	})
}

// The judge notices nothing, and the lease of a primary whose host stands still ends by itself. The
// host goes on at the moment at which another member gets the key. The gate of that member waits
// until the other standby is cut off.
func TestTheNaturalEndOfALeaseIsFenced(t *testing.T) {
	s := begin(t, func(o *rig.Options) { o.Serve = []string{"--detection", "1h"} })
	id, w := s.givenThree()
	old := s.leader(id)
	s.must(old.Freeze(), "freeze the primary's host")
	defer old.Thaw()
	s.goesOnAtTheElection(old, old.Thaw, 90*time.Second)
	s.overtaken(id, old.Name, 90*time.Second)
	s.eventually(20*time.Second, func() error {
		incidents, err := state.List[fence.Incident](s.Context(), s.rig.Store, state.IncidentRoot+id+"/")
		if err == nil && !slices.ContainsFunc(incidents, func(i state.Record[fence.Incident]) bool { return i.Value.Proof.Method == "gate" }) {
			err = fmt.Errorf("nobody was cut off for the gate: %+v", incidents)
		}
		return err
	})
	w.works(60 * time.Second)
	s.eventually(90*time.Second, func() error { return s.rig.InSync(s.Context(), id, 2) })
	w.nothingLost()
}

// With one standby its promotion is the fence, also if the lease ends by itself. The gate lets it
// through, and waits for nobody.
func TestTheOneStandbyPassesTheGate(t *testing.T) {
	s := begin(t, func(o *rig.Options) { o.Serve = []string{"--detection", "1h"} })
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	s.must(old.Freeze(), "freeze the primary's host")
	defer old.Thaw()
	next := s.goesOnAtTheElection(old, old.Thaw, 90*time.Second)
	s.primary(id, next, 30*time.Second)
	w.works(30 * time.Second)
	s.eventually(90*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
	log := s.patroniLog(id, next)
	if !strings.Contains(log, "pre_promote script") || !strings.Contains(log, "exited with 0") {
		s.Errorf("it was promoted without its gate:\n%s", log)
	}
}
