package fault

import (
	"errors"
	"testing"
	"time"

	"howdah/internal/testkit/rig"
)

// With three control planes any one may die, also the one that leads: databases
// go on, a lost primary is replaced, and the API answers at the others.
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

// The control plane that leads dies together with the host of a primary: the next
// one judges.
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
