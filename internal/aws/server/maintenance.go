package server

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// upkeepActions are those on maintenance that waits.
func (s *Server) upkeepActions() map[string]front.Action {
	return map[string]front.Action{
		"ApplyPendingMaintenanceAction":     front.On(s.applyPendingMaintenanceAction),
		"DescribePendingMaintenanceActions": front.On(s.describePendingMaintenanceActions),
	}
}

// maintenanceActions are those that RDS knows. The operating system of hosts, and the
// hosts, are their operator's: what concerns them is never pending here.
var maintenanceActions = []string{"system-update", spec.DBUpgrade, "hardware-maintenance", spec.RotateCertificate}

// Ways to opt in, as the API names them.
const (
	optNow  = "immediate"
	optNext = "next-maintenance"
	optOut  = "undo-opt-in"
)

// upkeep is a resource with its pending maintenance actions.
type upkeep struct {
	arn        string
	attributes map[string][]string // that filters compare
	actions    []rds.PendingMaintenanceAction
}

func (u upkeep) out() *rds.ResourcePendingMaintenanceActions {
	return &rds.ResourcePendingMaintenanceActions{ResourceIdentifier: wire.Some(u.arn), PendingMaintenanceActionDetails: u.actions}
}

// upkeepOfInstance is what is pending for an instance. The version of one in a cluster
// is its cluster's; its certificate is its own, save in a Multi-AZ DB cluster.
func (l *sight) upkeepOfInstance(c front.Call, i *spec.Instance, known rotations) upkeep {
	u := newUpkeep(i.Common, "db", "db-instance-id")
	if i.Cluster == "" {
		l.addUpgrade(&u, c, i.Common, i.AutoMinor)
	}
	if !i.Auto {
		u.addRotation(c, i.Common, known)
	}
	return u
}

// upkeepOfCluster is what is pending for a cluster as a whole.
func (l *sight) upkeepOfCluster(c front.Call, cluster *spec.Cluster, known rotations) upkeep {
	u := newUpkeep(cluster.Common, "cluster", "db-cluster-id")
	l.addUpgrade(&u, c, cluster.Common, cluster.AutoMinor)
	if cluster.MultiAZ() {
		u.addRotation(c, cluster.Common, known)
	}
	return u
}

func newUpkeep(common spec.Common, kind, filter string) upkeep {
	arn := common.ARN(kind, common.Name)
	return upkeep{arn: arn, attributes: map[string][]string{filter: {common.Name, arn}}}
}

// addUpgrade adds a newer minor version of PostgreSQL, if there is one.
func (l *sight) addUpgrade(u *upkeep, c front.Call, common spec.Common, auto bool) {
	to, pending := l.upgradeOf(common)
	if !pending || common.Deleting {
		return
	}
	action := rds.PendingMaintenanceAction{
		Action: wire.Some(spec.DBUpgrade), Description: wire.Some("Upgrade of " + common.Engine + " from " + common.Version + " to " + to),
	}
	next := spec.NextMaintenance(common.MaintenanceWindow, c.Now)
	if auto {
		action.AutoAppliedAfterDate, action.CurrentApplyDate = wire.Moment(next), wire.Moment(next)
	}
	if common.OptedIn(spec.DBUpgrade) {
		action.OptInStatus, action.CurrentApplyDate = wire.Some(optNext), wire.Moment(next)
	}
	u.actions = append(u.actions, action)
}

// addRotation adds a newer authority, if there is one. In the last part of an
// authority's life nobody is asked.
func (u *upkeep) addRotation(c front.Call, common spec.Common, known rotations) {
	to, pending := known.of(common)
	if !pending || common.Deleting {
		return
	}
	action := rds.PendingMaintenanceAction{
		Action:      wire.Some(spec.RotateCertificate),
		Description: wire.Some("Rotation of the server certificate from " + common.CACertificate + " to " + to + ", without a restart"),
	}
	next := spec.NextMaintenance(common.MaintenanceWindow, c.Now)
	if from := known.forced(common); !from.IsZero() {
		forced := spec.NextMaintenance(common.MaintenanceWindow, later(c.Now, from))
		action.AutoAppliedAfterDate = wire.Moment(forced)
		if forced.Equal(next) {
			action.CurrentApplyDate = wire.Moment(next)
		}
	}
	if common.OptedIn(spec.RotateCertificate) {
		action.OptInStatus, action.CurrentApplyDate = wire.Some(optNext), wire.Moment(next)
	}
	u.actions = append(u.actions, action)
}

// upkeeps are all resources of the caller's region that can have pending actions, by ARN.
func (l *sight) upkeeps(c front.Call) []upkeep {
	known := l.s.rotations()
	var all []upkeep
	for _, r := range l.Instances {
		if r.Value.Scope == c.Scope {
			all = append(all, l.upkeepOfInstance(c, r.Value, known))
		}
	}
	for n := range l.Clusters {
		if cluster := &l.Clusters[n].Value; cluster.Scope == c.Scope {
			all = append(all, l.upkeepOfCluster(c, cluster, known))
		}
	}
	slices.SortFunc(all, func(a, b upkeep) int { return cmp.Compare(a.arn, b.arn) })
	return all
}

// describePendingMaintenanceActions lists resources for which something is pending.
func (s *Server) describePendingMaintenanceActions(ctx context.Context, c front.Call, in *rds.DescribePendingMaintenanceActionsMessage) (*rds.PendingMaintenanceActionsMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := look.ReadFilters(in.Filters, "db-cluster-id", "db-instance-id")
	if err != nil {
		return nil, err
	}
	all := s.look(c.Account).upkeeps(c)
	if in.ResourceIdentifier != nil {
		arn := look.PlainARN(*in.ResourceIdentifier)
		all = slices.DeleteFunc(all, func(u upkeep) bool { return u.arn != arn })
		if len(all) == 0 {
			return nil, noResource(*in.ResourceIdentifier)
		}
	}
	all = slices.DeleteFunc(all, func(u upkeep) bool { return len(u.actions) == 0 || !filters.Match(u.attributes) })
	chosen, marker, err := page.Of(all, func(u upkeep) string { return u.arn }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.PendingMaintenanceActionsMessage{Marker: marker, PendingMaintenanceActions: []rds.ResourcePendingMaintenanceActions{}}
	for _, u := range chosen {
		out.PendingMaintenanceActions = append(out.PendingMaintenanceActions, *u.out())
	}
	return out, nil
}

func noResource(arn string) error {
	return look.OrBlank(strings.TrimSpace(arn), "ResourceIdentifier", wire.NewError(rds.ErrResourceNotFound, "The resource %s was not found, or has no maintenance of its own.", arn))
}

// applyPendingMaintenanceAction applies an action now, or notes it for the next window.
func (s *Server) applyPendingMaintenanceAction(ctx context.Context, c front.Call, in *rds.ApplyPendingMaintenanceActionMessage) (*rds.ApplyPendingMaintenanceActionResult, error) {
	action, opt := wire.Or(in.ApplyAction, ""), wire.Or(in.OptInType, "")
	if !slices.Contains(maintenanceActions, action) {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid ApplyAction %s. Valid values: %s", action, strings.Join(maintenanceActions, ", "))
	}
	if opt != optNow && opt != optNext && opt != optOut {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid OptInType %s. Valid values: %s, %s, %s", opt, optNow, optNext, optOut)
	}
	arn := look.PlainARN(wire.Or(in.ResourceIdentifier, ""))
	out := &rds.ApplyPendingMaintenanceActionResult{}
	err := s.client.Retry(ctx, func() error {
		l := s.look(c.Account)
		all := l.upkeeps(c)
		at := slices.IndexFunc(all, func(u upkeep) bool { return u.arn == arn })
		if at < 0 {
			return noResource(wire.Or(in.ResourceIdentifier, ""))
		}
		pending := all[at]
		n := slices.IndexFunc(pending.actions, func(a rds.PendingMaintenanceAction) bool { return *a.Action == action })
		if n < 0 {
			return wire.NewError(rds.ErrResourceNotFound, "The resource %s has no pending maintenance action %s.", arn, action)
		}
		shown, err := s.optIn(ctx, l, c, arn, action, opt)
		if err != nil {
			return err
		}
		if opt == optNow {
			shown = pending
			shown.actions[n].OptInStatus, shown.actions[n].CurrentApplyDate = wire.Some(optNow), wire.Moment(c.Now)
		}
		out.ResourcePendingMaintenanceActions = shown.out()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// optIn carries an opt-in to an action out, and answers what is pending then.
func (s *Server) optIn(ctx context.Context, l *sight, c front.Call, arn, action, opt string) (upkeep, error) {
	if record, err := l.FindInstance(c.Scope, arn); err == nil {
		if opt == optNow {
			return upkeep{}, s.instanceAction(action)(ctx, l, c, record)
		}
		i := record.Value
		i.OptIn(action, opt == optNext, c.Now)
		i.Generation++
		return l.upkeepOfInstance(c, &i, s.rotations()), s.client.Commit(ctx, state.Swap(record.Key, record.Revision, i))
	}
	record, err := l.FindCluster(c.Scope, arn)
	if err != nil {
		return upkeep{}, err
	}
	if opt == optNow {
		return upkeep{}, s.clusterAction(action)(ctx, l, c, record)
	}
	cluster := record.Value
	cluster.OptIn(action, opt == optNext, c.Now)
	cluster.Generation++
	return l.upkeepOfCluster(c, &cluster, s.rotations()), s.client.Commit(ctx, state.Swap(record.Key, record.Revision, cluster))
}

func (s *Server) instanceAction(action string) func(context.Context, *sight, front.Call, state.Record[spec.Instance]) error {
	if action == spec.RotateCertificate {
		return s.rotateInstance
	}
	return s.upgradeInstance
}

func (s *Server) clusterAction(action string) func(context.Context, *sight, front.Call, state.Record[spec.Cluster]) error {
	if action == spec.RotateCertificate {
		return s.rotateCluster
	}
	return s.upgradeCluster
}
