package edge

import (
	"errors"
	"log/slog"
	"testing"

	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/state/format"
)

// The records of the home are of a newer release: an edge that runs leads on as it did, to whoever
// is primary, and takes nothing new. One that starts touches nothing, and says why.
func TestRecordsOfANewerRelease(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.elect("m1")
	w.run(nil)
	w.leadsTo("writer", "m1")
	w.put(state.Control("s1"), format.Said{Reads: format.Newest + 1, Format: format.Newest + 1, Release: "99.1"})
	w.putRoute(w.route("later", route.Leader, "127.201.0.2:5432"))
	w.elect("m2")
	w.leadsTo("writer", "m2")
	if got, ok := w.paths.leading("later"); ok {
		t.Errorf("a new route leads to %s", got)
	}
	before := w.paths.lines()
	err := New(Config{Name: "edge", Version: "1.1", Store: w.home.Store, Forwarder: w.paths, Info: w.paths.Info(), Log: slog.New(slog.DiscardHandler)}).Run(t.Context())
	if !errors.Is(err, format.ErrNewer) {
		t.Errorf("it starts: %v", err)
	}
	if now := w.paths.lines(); len(now) < len(before) {
		t.Errorf("%q, and it was %q", now, before)
	}
}
