package judge

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// kept is a trial whose case is in etcd.
func (c *court) kept() *trial {
	c.Helper()
	tr := c.trial()
	if err := tr.keep(c.Context()); err != nil {
		c.Fatal(err)
	}
	return tr
}

func TestTryRevoke(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name   string
		before func(c *court, tr *trial) // what happens before it is tried
		want   error
		leader string
		phase  fence.Phase
	}{
		{name: "nothing moved", phase: fence.Revoked},
		{name: "an answer got lost", phase: fence.Revoked, before: func(c *court, tr *trial) {
			again := *tr
			if err := again.tryRevoke(c.Context()); err != nil {
				c.Fatal(err)
			}
		}},
		{name: "the lease ended by itself", phase: fence.Revoked, leader: "m2", before: func(c *court, _ *trial) { c.leads("m2") }},
		{name: "it won its key again", want: fence.ErrMoved, leader: "m1", phase: fence.Cutting, before: func(c *court, _ *trial) { c.leads("m1") }},
		{name: "its synchronous set moved", want: fence.ErrMoved, leader: "m1", phase: fence.Cutting, before: func(c *court, _ *trial) {
			c.raw(patroni.SyncKey(database), `{"leader":"m1","sync_standby":"m2","quorum":0}`)
		}},
		{name: "another judge changed the case", want: state.ErrConflict, leader: "m1", phase: fence.Suspected, before: func(c *court, tr *trial) {
			changed := tr.c
			changed.Phase = fence.Suspected
			c.put(state.Put(tr.key(), changed))
		}},
		{name: "another judge closed the case", want: state.ErrNotFound, leader: "m1", before: func(c *court, tr *trial) { c.put(state.Delete(tr.key())) }},
		{name: "nobody could take over", want: fence.ErrNotSafe, leader: "m1", phase: fence.Cutting, before: func(_ *court, tr *trial) {
			tr.c.Leadership.Sync.Standbys = nil
		}},
		{name: "without a proof", want: fence.ErrRefused, leader: "m1", phase: fence.Cutting, before: func(_ *court, tr *trial) { tr.c.Proof = fence.Proof{} }},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, quorum3)
			tr := c.kept()
			if v.before != nil {
				v.before(c, tr)
			}
			if err := tr.tryRevoke(t.Context()); !errors.Is(err, v.want) || (err == nil) != (v.want == nil) {
				t.Errorf("%v, want %v", err, v.want)
			}
			if l, err := fence.Read(t.Context(), c.store.Client, database); err != nil || l.Leader != v.leader {
				t.Errorf("%q leads, %v; want %q", l.Leader, err, v.leader)
			}
			known, err := state.Get[fence.Case](t.Context(), c.store, tr.key())
			if err != nil && v.phase != "" || known.Value.Phase != v.phase {
				t.Errorf("the case is %q, %v; want %q", known.Value.Phase, err, v.phase)
			}
			if v.phase == fence.Revoked && (tr.c.Phase != fence.Revoked || tr.revision != known.Revision || len(c.incidentsNow()) != 1) {
				t.Errorf("the trial goes on with %q at %d, want it at %d; %d incidents", tr.c.Phase, tr.revision, known.Revision, len(c.incidentsNow()))
			}
		})
	}
}

// incidentsNow does not wait for the mirror.
func (c *court) incidentsNow() []state.Record[fence.Incident] {
	c.Helper()
	all, err := state.List[fence.Incident](c.Context(), c.store, state.IncidentRoot)
	if err != nil {
		c.Fatal(err)
	}
	return all
}

func TestTheQuorumDoesNotWaitForStonith(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	// It has no answer before the test ends.
	gate := filepath.Join(t.TempDir(), "gate")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.judge(func(cfg *Config) { cfg.Stonith = program(t, "while [ -e "+gate+" ]; do sleep 0.1; done; exit 1") })
	c.knows("a", true)
	c.host("a", silent)
	c.phase(fence.Revoked)
	if all := c.incidents(); len(all) != 1 || all[0].Proof.Method != "quorum" || all[0].Revoked.Sub(all[0].Detected) >= stonithTimeout {
		t.Errorf("incidents %+v", all)
	}
}
