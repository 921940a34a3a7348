package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// hearPleas opens a case for every promotion that waits at its gate. The case is against the
// previous primary: its standbys cut themselves off until there are enough cuts. That primary has
// already lost its key, so nobody has to bear witness.
func (j *Judge) hearPleas(ctx context.Context) {
	for _, p := range state.ViewAll[fence.Plea](j.Cache, state.PleaRoot) {
		plea := p.Value
		if p.Key != state.Plea(plea.Database) {
			j.remove(ctx, p.Key, p.Revision) // a member pleads for its own database only
			continue
		}
		leader, revision := j.leader(plea.Database)
		layout, err := state.Load[plan.Layout](j.Cache, state.Layout(plea.Database))
		if errors.Is(err, state.ErrNotFound) || leader == plea.Old.Leader {
			j.remove(ctx, p.Key, p.Revision)
			continue
		}
		key := state.Fence(plea.Database, plea.Old.Leader)
		if _, _, known := j.Cache.Raw(key); err != nil || known || j.open[key] != nil || leader != plea.Member {
			continue
		}
		for _, m := range layout.Value.Members {
			if m.Name == plea.Old.Leader {
				now := time.Now().UTC()
				c := caseOf(layout.Value, m, now, fence.Leadership{
					Database: plea.Database, Leader: m.Name, LeaderRevision: revision, Sync: plea.Old,
				})
				c.Phase, c.Cut, c.Evidence = fence.Cutting, now, []string{fmt.Sprintf("%s waits at its gate: %s", plea.Member, plea.Why)}
				j.begin(ctx, &trial{judge: j, layout: layout.Value, done: make(chan struct{}), c: c})
			}
		}
	}
}

// hearPlea also has those standbys cut off that the case does not name. They came to be in sync
// after it was opened, and the gate waits for them.
func (t *trial) hearPlea(ctx context.Context) {
	plea, err := state.Load[fence.Plea](t.judge.Cache, state.Plea(t.c.Leadership.Database))
	if err != nil || plea.Value.Old.Leader != t.c.Leadership.Leader {
		return
	}
	known := t.c.Leadership.Sync
	if len(slices.DeleteFunc(slices.Clone(plea.Value.Missing), func(m string) bool { return slices.Contains(known.Standbys, m) })) == 0 {
		return
	}
	t.c.Leadership.Sync = plea.Value.Old
	if err := t.keep(ctx); err != nil {
		t.c.Leadership.Sync = known // heard again
	}
}

// tidy removes records that are no longer needed: an operator's word on a host that is heard, and a
// Passed record once it is settled or its database is deleted.
func (j *Judge) tidy(ctx context.Context) {
	for _, s := range state.ViewAll[fence.Sworn](j.Cache, state.SwornRoot) {
		if j.Pulse.Silence(s.Value.Host) < j.suspicion() {
			j.remove(ctx, s.Key, s.Revision)
		}
	}
	for _, p := range state.ViewAll[fence.Passed](j.Cache, state.PassedRoot) {
		if _, _, exists := j.Cache.Raw(state.Layout(p.Value.Database)); !exists || j.settled(*p.Value, p.Revision) {
			j.remove(ctx, p.Key, p.Revision)
		}
	}
}

// settled reports whether a Passed record is no longer needed. That is so once the member that was
// let through is the primary, and the sync key names it. It is also so once the previous primary
// leads again, and wrote the sync key after revision, with standbys: Patroni writes it without
// before the gate of a member that does not lead yet. Whichever serves must be recorded as Lead by
// then, as the previous primary asks for that when it wants its key again. And no case about the
// member may be open.
func (j *Judge) settled(p fence.Passed, revision int64) bool {
	leader, _ := j.leader(p.Database)
	text, written, _ := j.Cache.Raw(patroni.SyncKey(p.Database))
	sync, err := patroni.ParseSync(text)
	if err != nil || sync.Leader != leader {
		return false
	}
	leadsOn := sync.Leader == p.Old && written > revision && len(sync.Standbys) > 0
	if sync.Leader != p.Member && !leadsOn {
		return false
	}
	if lead, err := state.Load[member.Lead](j.Cache, state.Lead(p.Database)); err != nil || lead.Value.Member != leader {
		return false
	}
	key := state.Fence(p.Database, p.Member)
	if _, _, open := j.Cache.Raw(key); open || j.open[key] != nil {
		return false
	}
	layout, err := state.Load[plan.Layout](j.Cache, state.Layout(p.Database))
	if err != nil {
		return false
	}
	for _, m := range layout.Value.Members {
		if m.Name == sync.Leader {
			return j.serves(p.Database, m.Name, m.Host)
		}
	}
	return false
}

// serves reports whether a member takes writes, by what its host says. The host must be heard.
func (j *Judge) serves(database, name, host string) bool {
	report, err := state.Load[member.Report](j.Cache, state.Report(host, member.ID(database, name)))
	return err == nil && report.Value.Ready && !report.Value.InRecovery && j.Pulse.Silence(host) < j.suspicion()
}

func (j *Judge) remove(ctx context.Context, key string, revision int64) {
	if _, err := j.commit(ctx, state.Remove(key, revision)); err != nil && ctx.Err() == nil && !errors.Is(err, state.ErrConflict) {
		j.Log.Warn("remove a record", "key", key, "error", err)
	}
}
