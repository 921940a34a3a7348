package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// errMoved says that nothing was written, because something that was counted had changed.
var errMoved = errors.New("what was counted has changed meanwhile")

// mine returns the conditions of every write of the gate: its member still holds the leader key,
// and since f was read nobody has written the synchronous state, who was let through last, or who
// served last.
func (g *gate) mine(f facts) []clientv3.Cmp {
	var passed int64
	if f.passed != nil {
		passed = f.passed.revision
	}
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(patroni.LeaderKey(g.Database)), "=", g.PatroniName),
		unchanged(patroni.LeaderKey(g.Database), f.leaderRevision),
		unchanged(patroni.SyncKey(g.Database), f.syncRevision),
		unchanged(state.Passed(g.Database), passed),
		unchanged(state.Lead(g.Database), f.leadRevision),
	}
}

// consent records that the member is let through, if all that was counted still holds; otherwise
// it returns errMoved. It also writes the old primary's synchronous state again, unchanged, so
// that a compare-and-swap which the old primary has begun fails. Where Patroni has overwritten
// that state already, no such write is needed. With the consent goes the number of the timeline that
// the promotion begins.
func (g *gate) consent(ctx context.Context, f facts, v verdict) error {
	if f.old.Leader == "" && !f.recorded(g.Name) {
		return nil // no primary had standbys, and there is nothing that a record would correct
	}
	passed, err := encode(fence.Passed{Database: g.Database, Member: g.Name, Old: f.old.Leader, Why: v.why, At: time.Now().UTC(), LeaderRevision: f.leaderRevision})
	if err != nil {
		return err
	}
	number, err := g.claim(f)
	if err != nil {
		return err
	}
	changes := []clientv3.Op{
		clientv3.OpPut(state.Passed(g.Database), passed),
		clientv3.OpDelete(state.Death(g.Database, g.Name)),
		clientv3.OpDelete(state.Plea(g.Database)),
	}
	if f.old.Leader != "" && f.old.Leader != g.Name && !f.overwritten {
		changes = append(changes, clientv3.OpPut(patroni.SyncKey(g.Database), string(f.sync)))
	}
	g.note(number)
	err = g.commit(ctx, slices.Concat(g.mine(f), v.conditions, number.condition), slices.Concat(changes, number.change))
	if errors.Is(err, rpctypes.ErrPermissionDenied) && number.number > 0 {
		// One control plane has let the record be read, and another one is of an older release.
		number = claim{}
		err = g.commit(ctx, slices.Concat(g.mine(f), v.conditions), changes)
	}
	if err != nil {
		return err
	}
	return g.bar(number)
}

// recorded reports whether a record names another member as primary, or says of this one that it
// runs no more or is to be cut off, which is about an earlier time.
func (f facts) recorded(name string) bool {
	return f.passed != nil && f.passed.value.Member != name || f.lead != "" && f.lead != name ||
		slices.ContainsFunc(f.deaths, func(d record[fence.Death]) bool { return d.value.Member == name }) ||
		slices.ContainsFunc(f.cases, func(c record[fence.Case]) bool { return c.value.Leadership.Leader == name })
}

func (g *gate) commit(ctx context.Context, conditions []clientv3.Cmp, changes []clientv3.Op) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := g.Client.Txn(ctx).If(conditions...).Then(changes...).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("write to etcd: %w", err)
	case !answer.Succeeded:
		return errMoved
	}
	return nil
}

// plead tells the judge what is missing, once for each reason. A plea that was not written, because
// etcd did not answer or what was counted has changed, is written at a later look.
func (g *gate) plead(ctx context.Context, f facts, v verdict) {
	said := v.why + strings.Join(v.missing, ",")
	if said == g.pleaded {
		return
	}
	switch err := g.say(ctx, f, v); {
	case err == nil:
		g.pleaded = said
		g.Log.Warn("promotion waits at the gate", "why", v.why)
	case !errors.Is(err, errMoved):
		g.Log.Warn("the judge is not told yet why a promotion waits", "error", err)
	}
}

func (g *gate) say(ctx context.Context, f facts, v verdict, also ...clientv3.Op) error {
	text, err := encode(fence.Plea{
		Database: g.Database, Member: g.Name, Old: f.old, Why: v.why, Missing: v.missing, At: time.Now().UTC(),
	})
	if err != nil {
		return err
	}
	return g.commit(ctx, g.mine(f), append(also, clientv3.OpPut(state.Plea(g.Database), text)))
}

// refuse tells the judge why the member is refused. If Patroni has overwritten the synchronous
// state already, refuse restores it, so that the old primary and its standbys can go on. A consent
// that wrote that state last still has the same revision then, as others tell by that that nothing
// has been heard since (unsettled).
func (g *gate) refuse(ctx context.Context, f facts, v verdict) error {
	refused := fmt.Errorf("%s: %w", v.why, ErrRefused)
	if f.leader != g.Name {
		return refused
	}
	var also []clientv3.Op
	if f.overwritten {
		also = append(also, clientv3.OpPut(patroni.SyncKey(g.Database), string(f.oldSync)))
		if f.pending() {
			also = append(also, clientv3.OpPut(f.passed.key, f.passed.text))
		}
	}
	if err := g.say(ctx, f, v, also...); err != nil {
		return fmt.Errorf("%w; and to say so: %w", refused, err)
	}
	return refused
}
