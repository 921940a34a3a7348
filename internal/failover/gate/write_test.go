package gate

import (
	"context"
	"log/slog"
	"testing"

	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// If etcd did not take a plea, it is made again for the same reason.
func TestAPleaThatWasNotWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	s := newStage(t, anyOfTwo)
	g := &gate{Config: Config{Database: "db-1", Name: "m2", PatroniName: patroni.OwnName("db-1", "m2"), Client: s.store.Client, Log: slog.New(slog.DiscardHandler)}}
	f, err := g.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := verdict{why: "m3 is not cut off", missing: []string{"m3"}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	g.plead(gone, f, v)
	if _, revision := s.get(state.Plea("db-1")); revision != 0 || g.pleaded != "" {
		t.Fatalf("a plea that was not written counts as written: revision %d, %q", revision, g.pleaded)
	}
	g.plead(t.Context(), f, v)
	if plea := awaitPlea(s); plea.Why != v.why {
		t.Errorf("the plea is %+v", plea)
	}
}
