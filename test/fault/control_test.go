package fault

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit/rig"
)

// With three control planes any one may die, also the one that leads. Databases go on, a lost
// primary is replaced, and the API answers at the others.
func TestAnyControlPlaneMayDie(t *testing.T) {
	s := begin(t, func(o *rig.Options) { o.Serves = 3 })
	id := s.given("orders", true)
	w := s.writing("orders")
	for _, name := range []string{"serve2", "serve3", "serve"} {
		s.rig.KillPart(name)
		w.works(10 * time.Second)
		old := s.leaderSoon(id)
		s.must(old.KillPostgres(), "kill PostgreSQL of the primary")
		s.eventually(30*time.Second, func() error {
			m, err := s.rig.Leader(s.Context(), id)
			if err == nil && m.Name == old.Name {
				err = errors.New("the old primary leads still")
			}
			return err
		})
		w.works(10 * time.Second)
		s.must(s.rig.StartPart(name), "start "+name)
		s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	}
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 30*time.Second), "orders")
	w.nothingLost()
}

func (s *story) leaderSoon(database string) rig.Member {
	s.Helper()
	var m rig.Member
	s.eventually(20*time.Second, func() (err error) {
		m, err = s.rig.Leader(s.Context(), database)
		return err
	})
	return m
}

// The control plane that leads dies together with the host of a primary. The next control plane
// judges.
func TestTheLeadingControlPlaneDiesWithAHost(t *testing.T) {
	s := begin(t, func(o *rig.Options) { o.Serves = 3 })
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	s.rig.KillPart("serve") // the first one leads
	s.must(old.Freeze(), "freeze the primary's host")
	defer old.Thaw()
	w.works(30 * time.Second)
	s.must(old.Thaw(), "thaw it")
	s.must(s.rig.StartPart("serve"), "start serve")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
}

// etcd is away for longer than any lease lasts, and all leases are old when it comes back. The
// agents see that, too, and must not take a healthy Patroni for one that hangs.
func TestEtcdIsAwayForLongerThanALease(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	pid := must(postgres.Postmaster(old.DataDir()))
	serve := s.rig.PID("serve")
	s.must(syscall.Kill(serve, syscall.SIGSTOP), "freeze the control plane")
	frozen := time.Now()
	s.eventually(60*time.Second, func() error {
		if time.Since(frozen) < (patroni.TTL+5)*time.Second {
			return errors.New("the leases have not run out yet")
		}
		return nil
	})
	w.works(3 * time.Second)
	s.must(syscall.Kill(serve, syscall.SIGCONT), "thaw it")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 30*time.Second), "after the return of etcd")
	// This waits as long as a verdict would take.
	thawed := time.Now()
	s.eventually(60*time.Second, func() error {
		if time.Since(thawed) < 2*patroni.SelfDemotion*time.Second {
			return errors.New("an agent could still make a verdict")
		}
		return s.rig.InSync(s.Context(), id, 1)
	})
	if m := s.leader(id); m.Name != old.Name || must(postgres.Postmaster(m.DataDir())) != pid {
		t.Errorf("%s leads, with process %d; before: %s, %d", m.Name, must(postgres.Postmaster(m.DataDir())), old.Name, pid)
	}
	if n := len(must(s.rig.Failovers(s.Context(), id))); n != 0 {
		t.Errorf("%d failovers, for nothing", n)
	}
	if s.hasEvent("orders", "hanging Patroni") == nil {
		t.Error("a healthy Patroni was restarted")
	}
	w.nothingLost()
}
