package edge

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/held"
	"howdah/internal/model/route"
)

// Word of what is held here is there before it is real, and stays until it is no more: what
// an earlier process left stays, too, until a look at everything has taken it away.
func TestWordIsLeftOfWhatIsHeld(t *testing.T) {
	var kept []held.Place
	var broken error
	e := &Edge{leads: leads{}, Config: Config{Log: slog.New(slog.DiscardHandler), Keep: func(all []held.Place) error {
		if broken == nil {
			kept = all
		}
		return broken
	}}}
	old := held.Place{Database: "db-0", Member: "m9", Listen: "10.0.0.9:5432"}
	here := held.Place{Database: "db-1", Member: "m1", Listen: "10.0.0.1:5432"}
	e.Kept = []held.Place{old}
	routes := []route.Route{{ID: "writer", Database: "db-1", Listen: here.Listen}}
	leads := func(elected, last string) { e.leads["db-1"] = &lead{elected: elected, last: last} }
	point := map[string]endpoint.Endpoint{"writer": {ID: "writer", Listen: netip.MustParseAddrPort(here.Listen)}}
	step := func(name string, wanted map[string]endpoint.Endpoint, want ...held.Place) {
		t.Helper()
		e.keep(routes, wanted)
		if !slices.Equal(kept, want) {
			t.Errorf("%s: kept %v, want %v", name, kept, want)
		}
	}
	leads("m1", "")
	step("before the first look", point, here, old)
	e.points, e.synced = point, true
	step("after it", point, here)
	leads("", "m1")
	step("while there is no primary", point, here)
	leads("m2", "m1")
	step("while it goes away", nil, here)
	broken = errors.New("disk full")
	e.points = nil
	step("when word cannot be left", nil, here)
	broken = nil
	step("when it is gone", nil)
}
