package fault

import (
	"fmt"
	"testing"
	"time"

	"howdah/internal/testkit/rig"
)

// Read replicas may be ahead of the next primary: they received what no standby had confirmed. All
// of a chain come back to its history, also the member of a replica whose host was away meanwhile.
func TestAloneReplicasThatWereAheadFollowTheNextPrimary(t *testing.T) {
	s := alone(t, func(o *rig.Options) { o.Netns, o.Edge = true, []string{"--masquerade"} })
	id := s.given("orders", true)
	s.must(s.rig.Replica(s.Context(), "orders-read", "orders", true), "make a read replica with a standby")
	s.must(s.rig.Replica(s.Context(), "orders-far", "orders-read", false), "make a replica of the replica")
	read, err := s.rig.Database(s.Context(), "orders-read")
	s.must(err, "find the replica")
	far, err := s.rig.Database(s.Context(), "orders-far")
	s.must(err, "find the replica's replica")
	s.follows("orders", "orders-far")
	w := s.writing("orders")
	w.works(2 * time.Second)

	away := s.leader(read)
	if away.Zone == s.standby(id).Zone {
		s.failsOver("orders", id)
		s.eventually(30*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	}
	primary, standby := s.leader(id), s.standby(id)
	s.must(s.rig.Part(standby.ZoneLetter(), rig.Peers(primary.ZoneLetter())), "part the standby from the primary")
	go s.exec("orders", "CREATE TABLE ahead ()") // nobody acknowledges that
	for _, m := range []rig.Member{s.standby(read), s.leader(far), away} {
		s.eventually(5*time.Second, func() error { return s.has(m, "ahead") })
	}
	thaw, err := s.rig.FreezeHost(away.ZoneLetter())
	s.must(err, "freeze the host of the replica's leader")
	if primary.Zone != away.Zone {
		s.must(primary.KillPostgres(), "kill the primary")
	}
	s.overtaken(id, primary.Name, 20*time.Second)
	s.eventually(20*time.Second, func() error { return s.promoted(standby) }) // until then it takes what the old primary's kernel sends again
	s.must(s.rig.Part(standby.ZoneLetter()), "the network is whole again")
	s.replaced(read, away)
	w.works(5 * time.Second)
	s.must(thaw(), "the host is back")

	s.must(s.exec("orders", "CREATE TABLE after ()"), "write at the new primary")
	for _, m := range []rig.Member{s.leader(read), s.leader(far), away} {
		s.eventually(60*time.Second, func() error { return s.has(m, "after") })
		if err := s.has(m, "ahead"); err == nil {
			s.Errorf("%s of %s has what nobody acknowledged", m.Name, m.Database)
		}
	}
	w.nothingLost()
}

// has returns nil if a member has a table. It asks on the member's host.
func (s *story) has(m rig.Member, table string) error { return s.onHost(m, "TABLE "+table) }

// promoted returns nil if a member's PostgreSQL says itself that it is a primary.
func (s *story) promoted(m rig.Member) error {
	recovery, err := s.recovers(m)
	if err == nil && recovery {
		err = fmt.Errorf("%s of %s is in recovery", m.Name, m.Database)
	}
	return err
}
