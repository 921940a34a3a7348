package judge

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// An agent may bear witness under its own name only: its key of etcd says whose word it is, and
// not what is in it.
func TestAWitnessInAnothersName(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	for _, h := range []string{"b", "c"} {
		c.host(h, heard)
	}
	of := func(host string, reaches bool) fence.Witness {
		return fence.Witness{Case: tr.c.ID, Host: host, Patroni: reaches, Postgres: reaches}
	}
	// Both reach the primary; host z has no member of the database.
	c.put(state.Put(state.Witness(tr.c.ID, "b"), of("b", true)), state.Put(state.Witness(tr.c.ID, "c"), of("c", true)),
		state.Put(state.Witness(tr.c.ID, "z"), of("c", false)))
	c.put(state.Put(state.Witness(tr.c.ID, "y"), of("b", false)))
	for _, h := range []string{"b", "c"} {
		c.pulse.Beat(h, "")
	}
	if texts, err := tr.evidence(); !errors.Is(err, errAnswers) {
		t.Errorf("strangers depose a primary that both standbys reach: %q, %v", texts, err)
	}
}

// A member of one database pleads for another one.
func TestAPleaInTheNameOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	j := New(Config{Store: c.store, Cache: c.cache, Pulse: c.pulse, Detection: detection, Log: slog.New(slog.DiscardHandler)})
	c.put(state.Put(state.Layout("db-A"), plan.Layout{ID: "db-A"}))
	c.put(state.Put(state.Plea("db-A"), fence.Plea{
		Database: database, Member: "m1", Old: patroni.Sync{Leader: "m2", Standbys: []string{"m1", "m3"}, Quorum: 1}, Why: "forged",
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	j.hearPleas(ctx)
	if opened := j.open[state.Fence(database, "m2")]; opened != nil {
		t.Errorf("a case is open: the hosts of %v cut themselves off from m2", opened.c.Leadership.Sync.Standbys)
	}
}
