package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/control/plan"
	"howdah/internal/identity/seal"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// held returns the record of a database that waits to be taken over since the home was restored.
func (w *world) held(id string) (state.Record[regain.Hold], bool) {
	hold, err := state.Load[regain.Hold](w.cache, state.Hold(id))
	return hold, err == nil
}

// regain takes a database over once it is known which host has the newest copy of its data. Before
// that nothing else is done with it.
func (r *Reconciler) regain(ctx context.Context, w *world, d *database, hold state.Record[regain.Hold]) error {
	if d.Want.State == member.Absent {
		// It was to be deleted even before the restore, and may be deleted wherever it is.
		_, err := r.Store.Commit(ctx, state.Remove(hold.Key, hold.Revision))
		return err
	}
	if d.unread != nil {
		return d.unread
	}
	copies, missing, err := view.Held{Cache: w.cache, Seals: r.Seals}.Copies(d.Want.ID)
	if err != nil {
		return err
	}
	if len(missing) > 0 && hold.Value.Chosen == "" {
		return r.explain(ctx, hold, "waits for "+strings.Join(missing, ", ")+" to say what data are there")
	}
	elected, err := regain.Elect(hold.Value, copies)
	if err != nil {
		return r.explain(ctx, hold, err.Error())
	}
	return r.takeOver(ctx, w, d, hold, elected, copies)
}

// explain records why a database is still held.
func (r *Reconciler) explain(ctx context.Context, hold state.Record[regain.Hold], why string) error {
	if hold.Value.Why == why {
		return nil
	}
	hold.Value.Why = why
	_, err := r.Store.Commit(ctx, state.Swap(hold.Key, hold.Revision, hold.Value))
	return err
}

// takeOver makes the elected copy lead on, and lets Patroni work again, in one transaction. From
// then on the database is like any other, and the planner makes its members what they should be.
func (r *Reconciler) takeOver(ctx context.Context, w *world, d *database, hold state.Record[regain.Hold], elected regain.Copy, copies []regain.Copy) error {
	id := d.Want.ID
	copies = slices.DeleteFunc(copies, func(c regain.Copy) bool { return c.Assignment.Scope != id })
	layout, assigned, err := r.admit(w, d, hold.Value, elected, copies)
	if err != nil {
		return fmt.Errorf("take %s over: %w", id, err)
	}
	configKey, leaderKey := patroni.ConfigKey(id), patroni.LeaderKey(id)
	config, configRevision, _ := w.cache.Raw(configKey)
	learned, follows := learn(d, elected, copies)
	want := d.Want
	if !follows {
		want.Upstream = nil
	}
	resumed, err := regain.Resume(config, follows, plan.SyncMode(want, layout))
	if err != nil {
		return fmt.Errorf("take %s over: %w", id, err)
	}
	name := elected.Assignment.PatroniName()
	alone, err := regain.Alone(name)
	if err != nil {
		return fmt.Errorf("take %s over: %w", id, err)
	}
	conditions, changes, err := state.Split(append(slices.Concat(assigned, learned),
		// From now on it is known who leads, also to a gate which finds that etcd has forgotten the
		// rest.
		state.Put(state.Lead(id), member.Lead{Member: elected.Assignment.Name, Host: elected.Host}),
		state.Remove(hold.Key, hold.Revision), state.Swap(state.Layout(id), d.layout.Revision, layout), state.Unchanged(configKey, configRevision)))
	if err != nil {
		return fmt.Errorf("take %s over: %w", id, err)
	}
	conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(leaderKey), "=", 0))
	changes = append(changes,
		clientv3.OpPut(configKey, resumed), clientv3.OpPut(patroni.SyncKey(id), alone),
		clientv3.OpPut(patroni.InitializeKey(id), elected.System), clientv3.OpPut(patroni.HistoryKey(id), regain.History(elected.Timeline)))
	if elected.Running {
		// It leads on without an election if its Patroni comes for the key in time.
		lease, err := r.Store.Client.Grant(ctx, patroni.TTL)
		if err != nil {
			return fmt.Errorf("take %s over: %w", id, err)
		}
		changes = append(changes, clientv3.OpPut(leaderKey, name, clientv3.WithLease(lease.ID)))
	}
	answer, err := r.Store.Client.Txn(ctx).If(conditions...).Then(changes...).Commit()
	if err != nil {
		return fmt.Errorf("take %s over: %w", id, err)
	}
	if !answer.Succeeded {
		return fmt.Errorf("take %s over: %w", id, state.ErrConflict)
	}
	r.Log.Info("database taken over", "database", id, "leads", elected.Name(), "timeline", elected.Timeline, "lsn", elected.LSN, "serves", elected.Running)
	return r.Cache.WaitRevision(ctx, answer.Header.Revision)
}

// admit makes a layout know all copies of its database, also those of members that were made after
// the backup. If there are too many, the planner removes some, as it always does. Hosts are told
// what they were told before. A host that is the only one to say that it has a copy is told
// nothing, and gets no part in the database, unless an operator chose its copy. A host whose member
// was given up before is told so again.
func (r *Reconciler) admit(w *world, d *database, hold regain.Hold, elected regain.Copy, copies []regain.Copy) (plan.Layout, []state.Op, error) {
	layout := d.layout.Value
	layout.ID, layout.Members = d.Want.ID, slices.Clone(layout.Members)
	var ops []state.Op
	tell := func(c regain.Copy, a member.Assignment) error {
		if _, _, told := w.cache.Raw(state.Assign(c.Host, a.ID)); told {
			return nil
		}
		op, err := r.assign(c.Host, 0, a)
		ops = append(ops, op)
		return err
	}
	for _, c := range copies {
		a := c.Assignment
		counts := c.Ground.Founded() || c.Name() == elected.Name()
		if number := member.Number(a.Name); counts || number < layout.Next+mostUnfounded {
			layout.Next = max(layout.Next, number) // no name is used twice
		}
		if !counts && slices.Contains(hold.Left, c.Name()) {
			gone := member.Assignment{ID: a.ID, Scope: a.Scope, Name: a.Name, OwnName: a.OwnName, Generation: a.Generation + 1, Want: member.Absent}
			if err := tell(c, gone); err != nil {
				return layout, nil, err
			}
		}
		if !counts || c.System != elected.System || a.Generation == 0 || has(&layout, a.Name) {
			continue
		}
		layout.Members = append(layout.Members, plan.Placed{
			Name: a.Name, OwnName: a.OwnName, Seat: w.seatOf(d, copies), Host: c.Host, Zone: w.zoneOf(c.Host),
			Address: a.Address, Port: a.Port, RESTPort: a.RESTPort, Votes: true, Served: true, Stopped: a.Want == member.Stopped,
		})
		if err := tell(c, a); err != nil {
			return layout, nil, err
		}
	}
	return layout, ops, nil
}

// mostUnfounded bounds how far a host's word alone can raise the numbers of new members.
const mostUnfounded = 1000

// learn updates the record of a database by what hosts know better than the backup. First, the
// master user's newest password: without it a later change would count as one that was made long
// ago. Second, whether a read replica was promoted: a primary that became a replica again would
// lose what it acknowledged since. follows reports whether it is still a replica.
func learn(d *database, elected regain.Copy, copies []regain.Copy) (ops []state.Op, follows bool) {
	replica := d.Want.Upstream != nil
	follows = replica && !elected.Primary && elected.Assignment.Cluster.Upstream != nil
	if follows {
		return nil, true
	}
	var newest member.Owner
	for _, c := range copies {
		counts := c.Ground.Founded() || c.Name() == elected.Name()
		if o := c.Assignment.Owner; counts && c.System == elected.System && o.Serial > newest.Serial {
			newest = o
		}
	}
	change := func(c *spec.Common) bool {
		if newest.Name == "" || newest.Serial <= c.PasswordSerial && !replica {
			return false
		}
		c.MasterUser, c.Verifier, c.PasswordSerial = newest.Name, newest.Verifier, newest.Serial
		return true
	}
	if d.Cluster != nil {
		c := d.Cluster.Value
		if change(&c.Common) {
			ops = append(ops, state.Swap(d.Cluster.Key, d.Cluster.Revision, c))
		}
		return ops, false
	}
	if len(d.Specs) == 0 {
		return nil, false
	}
	i := *d.Specs[0].Value
	if changed := change(&i.Common); changed || replica {
		i.Promoted = i.Promoted || replica
		i.Generation++
		ops = append(ops, state.Swap(d.Specs[0].Key, d.Specs[0].Revision, i))
	}
	return ops, false
}

// seatOf returns a seat for a member that nobody knows: the seat of a member that has no data left,
// and that it has most likely replaced.
func (w *world) seatOf(d *database, copies []regain.Copy) string {
	seat := ""
	for i, m := range d.layout.Value.Members {
		left := slices.ContainsFunc(copies, func(c regain.Copy) bool { return c.Assignment.ID == member.ID(d.Want.ID, m.Name) })
		if i == 0 || !left {
			seat = m.Seat
		}
		if !left {
			break
		}
	}
	return seat
}

func (w *world) zoneOf(host string) string {
	if h := w.host(host); h != nil {
		return h.Zone
	}
	return ""
}

// unknown returns the scopes of data on hosts for which no database is known. Nothing of them is
// touched. all says that not every host has said what it has, so that there may be more.
func (w *world) unknown(seals *seal.Assignments) (scopes map[string]bool, all bool) {
	if _, _, restored := w.cache.Raw(state.Restored()); !restored {
		return nil, false
	}
	copies, missing, err := view.Held{Cache: w.cache, Seals: seals}.Copies("")
	if err != nil || len(missing) > 0 {
		return nil, true
	}
	scopes = map[string]bool{}
	for _, c := range copies {
		scopes[c.Assignment.Scope] = true
	}
	return scopes, false
}
