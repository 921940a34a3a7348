package restore

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// past has the families that say what was going on. Nothing of it is true any more, and a task
// would be done twice.
var past = []string{
	state.LiveRoot, state.TaskRoot, state.ResultRoot, state.ReportRoot, state.FenceRoot, state.WitnessRoot, state.CutRoot,
	state.DeathRoot, state.PleaRoot, state.PassedRoot, state.SwornRoot, state.IncidentRoot, state.AttemptRoot, state.LeadRoot,
	state.SwitchRoot, state.ControlRoot, state.ElectionRoot, state.HeldRoot, state.HoldingRoot, state.GoneRoot,
	state.OperationCancelRoot, state.JobRoot, state.JobReportRoot,
}

// namesApart is how much higher the numbers of new members are than those that were given out. Some
// were given out since the backup, and no name is used twice.
const namesApart = 100

// Rewrite makes a restored state harmless: it forgets what was going on, and holds all databases
// (package regain). It may be called again. The log gets a line for what is left out.
func Rewrite(ctx context.Context, s *state.Store, home regain.Home, log *slog.Logger) (held int, err error) {
	scopes, others, err := findScopes(ctx, s)
	if err != nil {
		return 0, err
	}
	ops, err := orders(ctx, s, scopes)
	if err != nil {
		return 0, err
	}
	begun, err := operations(ctx, s, log)
	if err != nil {
		return 0, err
	}
	ops = append(ops, begun...)
	for _, root := range past {
		ops = append(ops, state.DeletePrefix(root))
	}
	for _, scope := range others {
		ops = append(ops, state.DeletePrefix(patroni.Prefix(scope)))
	}
	// The holds come first. If this dies in between, nothing is left that would run free.
	for _, id := range slices.Sorted(maps.Keys(scopes)) {
		if err := hold(ctx, s, id); err != nil {
			return 0, err
		}
	}
	if _, err := s.CommitEach(ctx, ops); err != nil {
		return 0, fmt.Errorf("forget what went on: %w", err)
	}
	// That also removed the marks of an earlier restore.
	var marks []state.Op
	for id, h := range scopes {
		h.Database, h.Since, h.Why, h.Chosen = id, home.At, "", ""
		marks = append(marks, state.Put(state.Hold(id), *h))
	}
	if _, err := s.CommitEach(ctx, marks); err != nil {
		return 0, fmt.Errorf("hold databases: %w", err)
	}
	_, err = s.Commit(ctx, state.Put(state.Restored(), home))
	return len(scopes), err
}

// findScopes finds all databases that are wanted, with the identifiers of their data. others are
// those of Patroni's scopes of which only leftovers are there.
func findScopes(ctx context.Context, s *state.Store) (holds map[string]*regain.Hold, others []string, err error) {
	holds = map[string]*regain.Hold{}
	instances, err := state.List[spec.Instance](ctx, s, state.InstanceRoot)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range instances {
		if i.Value.Cluster == "" {
			holds[i.Value.ResourceID] = &regain.Hold{}
		}
	}
	clusters, err := state.List[spec.Cluster](ctx, s, state.ClusterRoot)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range clusters {
		holds[c.Value.ResourceID] = &regain.Hold{}
	}
	answer, err := s.Client.Get(ctx, patroni.Namespace, clientv3.WithPrefix())
	if err != nil {
		return nil, nil, fmt.Errorf("read Patroni's keys: %w", err)
	}
	for _, kv := range answer.Kvs {
		scope, rest, _ := patroni.SplitKey(string(kv.Key))
		if h := holds[scope]; h == nil {
			others = append(others, scope)
		} else if rest == "initialize" && string(kv.Value) != regain.Held {
			h.System = string(kv.Value)
		}
	}
	// These were not taken over since the previous restore.
	old, err := state.List[regain.Hold](ctx, s, state.HeldRoot)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range old {
		if holds[h.Value.Database] != nil {
			*holds[h.Value.Database] = h.Value
		}
	}
	return holds, slices.Compact(others), nil
}

// orders returns the changes of what was decided. A member that was to be deleted may be the only
// copy by now, so that is decided anew. Hosts keep what nobody tells them of. The holds say what
// was decided: which members there had been, and which were given up.
func orders(ctx context.Context, s *state.Store, holds map[string]*regain.Hold) ([]state.Op, error) {
	var ops []state.Op
	layouts, err := state.List[plan.Layout](ctx, s, state.LayoutRoot)
	if err != nil {
		return nil, err
	}
	placed := map[string]bool{}
	for _, l := range layouts {
		v := l.Value
		if h := holds[v.ID]; h != nil && h.Database == "" { // numbers have a gap since an earlier restoration
			h.Given = v.Next
		}
		for i := range v.Members {
			placed[v.Members[i].Host+"/"+member.ID(v.ID, v.Members[i].Name)] = true
			v.Members[i].Leaving, v.Members[i].Going, v.Members[i].Boost = false, plan.Staying, false
		}
		v.Next, v.Asked, v.Steps = v.Next+namesApart, nil, nil
		ops = append(ops, state.Put(l.Key, v))
	}
	assigned, err := state.List[member.Assignment](ctx, s, state.AssignRoot)
	if err != nil {
		return nil, err
	}
	for _, a := range assigned {
		if a.Value.Want != member.Absent {
			continue
		}
		ops = append(ops, state.Delete(a.Key))
		at := state.Tail(a.Key, state.AssignRoot)
		host, _, _ := strings.Cut(at, "/")
		if h := holds[a.Value.Scope]; h != nil && !placed[at] {
			h.Left = append(h.Left, host+"/"+a.Value.Name)
		}
	}
	return ops, nil
}

// operations returns the changes of operations that were under way. None of them goes on. One that
// cannot be read is left out. It says nothing that the databases need, and a later release that can
// read it would go on with it.
func operations(ctx context.Context, s *state.Store, log *slog.Logger) ([]state.Op, error) {
	begun, err := s.Client.Get(ctx, state.OperationRoot, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list operations: %w", err)
	}
	var ops []state.Op
	for _, kv := range begun.Kvs {
		key := string(kv.Key)
		var r operation.Record
		if err := json.Unmarshal(kv.Value, &r); err != nil {
			log.Warn("the record of an operation cannot be read, and is left out: what the operation made is left as it is", "key", key, "error", err)
			ops = append(ops, state.Delete(key))
		} else if !r.State.Ended() {
			ops = append(ops, state.Put(key, r.Forget(time.Now())))
		}
	}
	return ops, nil
}

// hold makes Patroni do nothing with a database except let a primary serve that serves. Patroni
// pauses, there is no leader, and the identifier of the data is nobody's. So a primary that runs
// goes on, and does not take the key. Nobody is named who may be promoted when Patroni goes on.
func hold(ctx context.Context, s *state.Store, id string) error {
	answer, err := s.Client.Get(ctx, patroni.ConfigKey(id))
	if err != nil {
		return fmt.Errorf("hold %s: %w", id, err)
	}
	config := map[string]any{}
	if len(answer.Kvs) > 0 {
		if err := json.Unmarshal(answer.Kvs[0].Value, &config); err != nil {
			return fmt.Errorf("hold %s: read Patroni's configuration: %w", id, err)
		}
	}
	text, err := regain.Pause(config)
	if err != nil {
		return fmt.Errorf("hold %s: %w", id, err)
	}
	drop := func(key string) clientv3.Op { return clientv3.OpDelete(key) }
	changes := []clientv3.Op{
		clientv3.OpPut(patroni.ConfigKey(id), text),
		clientv3.OpPut(patroni.InitializeKey(id), regain.Held),
		clientv3.OpPut(patroni.SyncKey(id), regain.NobodyInSync),
		drop(patroni.LeaderKey(id)), drop(patroni.FailsafeKey(id)), drop(patroni.Prefix(id) + "status"), drop(patroni.Prefix(id) + "failover"),
		clientv3.OpDelete(patroni.MembersPrefix(id), clientv3.WithPrefix()),
	}
	if _, err := s.Client.Txn(ctx).Then(changes...).Commit(); err != nil {
		return fmt.Errorf("hold %s: %w", id, err)
	}
	return nil
}
