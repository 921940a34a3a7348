package home

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const (
	wipeTimeout = 60 * time.Second
	// wipeLook is the pause between two looks at what is left.
	wipeLook = 10 * time.Millisecond
)

// wipe deletes every resource of a disposable home, whatever protects it.
//
// It only marks all resources as being deleted, which is final, and then waits. Reconcile and the
// agents delete as they always do. So nobody works against them, and if anyone crashes at any time,
// the resources that are left go on being deleted. What belongs to no resource any more is deleted
// in one transaction at the end. That fails if somebody created something meanwhile, and then all
// begins again.
func (s *service) wipe(ctx context.Context, c front.Call, _ admin.Nothing) (admin.WipeAnswer, error) {
	if !s.disposable {
		return admin.WipeAnswer{}, admin.NewError(admin.CodeNotDisposable, "This home is not disposable: nothing was deleted.",
			"only a home that `howdah up --disposable` made can be wiped")
	}
	w := &wipe{service: s, instances: map[string]bool{}, clusters: map[string]bool{}, members: map[string]bool{}}
	s.log.Info("wiping all resources", "request", c.ID)
	for {
		if err := s.Fresh(ctx); err != nil {
			return admin.WipeAnswer{}, err
		}
		done, err := w.round(ctx)
		if err != nil {
			return admin.WipeAnswer{}, err
		}
		if done {
			s.log.Info("wiped", "request", c.ID, "after", s.now().Sub(c.Now).String())
			return w.answer(s.now().Sub(c.Now)), nil
		}
		select {
		case <-ctx.Done():
			return admin.WipeAnswer{}, admin.NewError(admin.CodeUnavailable,
				"Not everything is deleted yet: left are "+strings.Join(w.left, ", ")+".", "it goes on being deleted: see howdah status")
		case <-time.After(wipeLook):
		}
	}
}

// wipe is one wipe under way.
type wipe struct {
	*service
	// These are what was found, by resource id or HOST/MEMBER.
	instances, clusters, members map[string]bool
	left, pending                []string
}

func (w *wipe) answer(took time.Duration) admin.WipeAnswer {
	return admin.WipeAnswer{
		Instances: len(w.instances), Clusters: len(w.clusters), Members: len(w.members),
		Seconds: took.Seconds(), Pending: w.pending,
	}
}

// round takes the wipe as far as it gets now.
func (w *wipe) round(ctx context.Context) (done bool, err error) {
	w.left, w.pending = nil, nil
	ops := append(w.condemn(), w.stray()...)
	for batch := range state.Batches(ops) {
		// If somebody changed one meanwhile, the next round sees it.
		if _, err := w.Store.Commit(ctx, batch...); err != nil && !errors.Is(err, state.ErrConflict) {
			return false, err
		}
	}
	if len(ops) > 0 || len(w.left) > 0 {
		return false, nil
	}
	return w.clear(ctx)
}

// condemn marks every resource as being deleted.
func (w *wipe) condemn() []state.Op {
	var ops []state.Op
	clusters := map[string]bool{}
	for _, r := range state.LoadAll[spec.Cluster](w.Cache, state.ClusterRoot) {
		clusters[r.Value.ResourceID], w.clusters[r.Value.ResourceID] = true, true
		w.left = append(w.left, "cluster "+r.Value.Name)
		if !r.Value.Deleting {
			r.Value.Deleting = true
			r.Value.Generation++
			ops = append(ops, state.Swap(r.Key, r.Revision, r.Value))
		}
	}
	for _, r := range state.LoadAll[spec.Instance](w.Cache, state.InstanceRoot) {
		w.instances[r.Value.ResourceID] = true
		w.left = append(w.left, "instance "+r.Value.Name)
		switch {
		case r.Value.Cluster != "" && !clusters[r.Value.Cluster]:
			ops = append(ops, state.Remove(r.Key, r.Revision)) // nobody else would
		case !r.Value.Deleting:
			r.Value.Deleting = true
			r.Value.Generation++
			ops = append(ops, state.Swap(r.Key, r.Revision, r.Value))
		}
	}
	for _, r := range state.LoadAll[spec.Endpoint](w.Cache, state.EndpointRoot) {
		w.left = append(w.left, "endpoint "+r.Value.Name)
		switch {
		case !clusters[r.Value.Cluster]:
			ops = append(ops, state.Remove(r.Key, r.Revision))
		case !r.Value.Deleting:
			r.Value.Deleting = true
			r.Value.Generation++
			ops = append(ops, state.Swap(r.Key, r.Revision, r.Value))
		}
	}
	return ops
}

// stray deals with members of databases that no longer have a resource. Agents are told to delete
// them, and their records are removed once nothing is left on the host. A lost host keeps its
// orders.
func (w *wipe) stray() []state.Op {
	s, owned := w.service, w.owners()
	var ops []state.Op
	for _, l := range state.LoadAll[plan.Layout](s.Cache, state.LayoutRoot) {
		if !owned[l.Value.ID] {
			ops = append(ops, state.Remove(l.Key, l.Revision))
		}
	}
	for _, a := range state.LoadAll[member.Assignment](s.Cache, state.AssignRoot) {
		name := state.Tail(a.Key, state.AssignRoot)
		host, _, _ := strings.Cut(name, "/")
		w.members[name] = true
		report, err := state.Load[member.Report](s.Cache, state.Report(host, a.Value.ID))
		switch {
		case owned[a.Value.Scope]:
			w.left = append(w.left, name)
		case a.Value.Want != member.Absent:
			a.Value.Want = member.Absent
			a.Value.Generation++
			ops = append(ops, state.Swap(a.Key, a.Revision, a.Value))
		case err == nil && report.Value.Gone:
			ops = append(ops, state.Remove(a.Key, a.Revision), state.Delete(report.Key))
		case !s.alive(host):
			w.pending = append(w.pending, name)
		default:
			w.left = append(w.left, name)
		}
	}
	return ops
}

// owners returns the databases that a resource stands for.
func (w *wipe) owners() map[string]bool {
	ids := map[string]bool{}
	for _, d := range w.databases.All() {
		ids[d.Want.ID] = true
	}
	return ids
}

// alive reports whether a host is alive.
func (s *service) alive(host string) bool {
	live, err := state.Load[member.Liveness](s.Cache, state.Live(host))
	return err == nil && live.Value.Alive
}

// remains has the families of keys of which a wipe leaves nothing. Hosts, edges and control planes
// stay, and so do the orders to lost hosts, and repositories with the files in them.
var remains = []string{
	state.LayoutRoot, state.AddressRoot, state.RouteRoot, state.TaskRoot, state.ResultRoot, state.ReportRoot,
	state.DrainRoot, state.FenceRoot, state.WitnessRoot, state.CutRoot, state.DeathRoot, state.PleaRoot, state.PassedRoot, state.TimelineRoot, state.IncidentRoot, state.FailoverRoot,
	state.LeadRoot, state.NoticeRoot, state.SwitchRoot, state.WayRoot, state.EventRoot, state.SubnetGroupRoot, state.OptionGroupRoot,
	state.SecurityGroupRoot, state.DefaultAuthorityRoot, state.SecretRoot, state.StorageKeyRoot, state.KMSKeyRoot, state.KMSAliasRoot, patroni.Namespace,
	state.EventSubRoot, state.TopicRoot, state.SubscriptionRoot, state.MessageRoot, state.DeliveryRoot, state.NotifyCursor(),
	state.OperationRoot, state.OperationCancelRoot,
	state.BackupRoot, state.BackupPartRoot, state.SnapshotRoot, state.ClusterSnapshotRoot, state.AutomatedRoot, state.DrillRoot, state.JobRoot, state.JobReportRoot,
}

// clear removes what is left of anything, if there is no resource at this very moment: then none of
// it belongs to anybody.
func (w *wipe) clear(ctx context.Context) (done bool, err error) {
	ops := make([]clientv3.Op, len(remains))
	for i, prefix := range remains {
		ops[i] = clientv3.OpDelete(prefix, clientv3.WithPrefix())
	}
	// A range without keys compares as one key that was never written.
	nothing := clientv3.Compare(clientv3.ModRevision(state.SpecRoot).WithPrefix(), "=", 0)
	answer, err := w.Store.Client.Txn(ctx).If(nothing).Then(ops...).Commit()
	if err != nil {
		return false, fmt.Errorf("clear the state: %w", err)
	}
	if !answer.Succeeded {
		return false, nil
	}
	return true, w.Cache.WaitRevision(ctx, answer.Header.Revision)
}
