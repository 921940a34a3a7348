package fault

import (
	"testing"
	"time"

	"howdah/internal/testkit/rig"
)

// With an edge on every host, an endpoint's address moves to the host of the new primary. Clients
// elsewhere on the network follow.
func TestAloneTheAddressMovesWithThePrimary(t *testing.T) {
	s := alone(t, func(o *rig.Options) { o.Netns, o.Moving = true, true })
	id := s.given("orders", true)
	w := s.writing("orders")
	for _, break_ := range []func(rig.Member) error{
		rig.Member.KillPostgres,
		func(m rig.Member) error { return s.rig.CutLink(m.ZoneLetter()) },
	} {
		s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
		old := s.leader(id)
		s.must(break_(old), "break the primary")
		w.works(10 * time.Second)
		if s.leader(id).Name == old.Name {
			t.Fatal("the old primary leads still")
		}
		s.must(s.rig.HealLink(old.ZoneLetter()), "heal")
	}
	w.nothingLost()
}
