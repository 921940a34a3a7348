package upkeep

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
)

// maintenanceActions are those that RDS knows. The operating system of hosts, and the
// hosts, are their operator's: what concerns them is never pending here.
var maintenanceActions = []string{"system-update", spec.DBUpgrade, "hardware-maintenance", spec.RotateCertificate}

// Ways to opt in, as the API names them.
const (
	optNow  = "immediate"
	optNext = "next-maintenance"
	optOut  = "undo-opt-in"
)

// pending is a resource with its pending maintenance actions.
type pending struct {
	arn        string
	attributes map[string][]string // that filters compare
	actions    []rds.PendingMaintenanceAction
}

func (p pending) out() *rds.ResourcePendingMaintenanceActions {
	return &rds.ResourcePendingMaintenanceActions{ResourceIdentifier: wire.Some(p.arn), PendingMaintenanceActionDetails: p.actions}
}

// pendingOf is what is pending for a subject.
func pendingOf(l *look.Look, c front.Call, s subject, known authorities) pending {
	kind, filter := "db", "db-instance-id"
	if s.kind == event.Cluster {
		kind, filter = "cluster", "db-cluster-id"
	}
	arn := s.ARN(kind, s.Name)
	p := pending{arn: arn, attributes: map[string][]string{filter: {s.Name, arn}}}
	if s.ownVersion {
		p.addUpgrade(l, c, s)
	}
	if s.ownCertificate {
		p.addRotation(c, s, known)
	}
	return p
}

// addUpgrade adds a newer minor version of PostgreSQL, if there is one.
func (p *pending) addUpgrade(l *look.Look, c front.Call, s subject) {
	to, newer := upgradeOf(l, s.Common)
	if !newer || s.Deleting {
		return
	}
	action := rds.PendingMaintenanceAction{
		Action: wire.Some(spec.DBUpgrade), Description: wire.Some("Upgrade of " + s.Engine + " from " + s.Version + " to " + to),
	}
	next := spec.NextMaintenance(s.MaintenanceWindow, c.Now)
	if s.autoMinor {
		action.AutoAppliedAfterDate, action.CurrentApplyDate = wire.Moment(next), wire.Moment(next)
	}
	if s.OptedIn(spec.DBUpgrade) {
		action.OptInStatus, action.CurrentApplyDate = wire.Some(optNext), wire.Moment(next)
	}
	p.actions = append(p.actions, action)
}

// addRotation adds a newer authority, if there is one. In the last part of an
// authority's life nobody is asked.
func (p *pending) addRotation(c front.Call, s subject, known authorities) {
	to, newer := known.of(s.Common)
	if !newer || s.Deleting {
		return
	}
	action := rds.PendingMaintenanceAction{
		Action:      wire.Some(spec.RotateCertificate),
		Description: wire.Some("Rotation of the server certificate from " + s.CACertificate + " to " + to + ", without a restart"),
	}
	next := spec.NextMaintenance(s.MaintenanceWindow, c.Now)
	if from := known.forced(s.Common); !from.IsZero() {
		forced := spec.NextMaintenance(s.MaintenanceWindow, later(c.Now, from))
		action.AutoAppliedAfterDate = wire.Moment(forced)
		if forced.Equal(next) {
			action.CurrentApplyDate = wire.Moment(next)
		}
	}
	if s.OptedIn(spec.RotateCertificate) {
		action.OptInStatus, action.CurrentApplyDate = wire.Some(optNext), wire.Moment(next)
	}
	p.actions = append(p.actions, action)
}

// pendings are all resources of the caller's region that can have pending actions, by ARN.
func (u *Upkeep) pendings(l *look.Look, c front.Call) []pending {
	known := u.authorities()
	var all []pending
	for _, r := range l.Instances {
		if r.Value.Scope == c.Scope {
			all = append(all, pendingOf(l, c, subjectOfInstance(r.Value), known))
		}
	}
	for n := range l.Clusters {
		if cluster := &l.Clusters[n].Value; cluster.Scope == c.Scope {
			all = append(all, pendingOf(l, c, subjectOfCluster(cluster), known))
		}
	}
	slices.SortFunc(all, func(a, b pending) int { return cmp.Compare(a.arn, b.arn) })
	return all
}

// describePendingMaintenanceActions lists resources for which something is pending.
func (u *Upkeep) describePendingMaintenanceActions(ctx context.Context, c front.Call, in *rds.DescribePendingMaintenanceActionsMessage) (*rds.PendingMaintenanceActionsMessage, error) {
	if err := u.State.Fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := look.ReadFilters(in.Filters, "db-cluster-id", "db-instance-id")
	if err != nil {
		return nil, err
	}
	all := u.pendings(u.Looks.Of(c.Account), c)
	if in.ResourceIdentifier != nil {
		arn := look.PlainARN(*in.ResourceIdentifier)
		all = slices.DeleteFunc(all, func(p pending) bool { return p.arn != arn })
		if len(all) == 0 {
			return nil, noResource(*in.ResourceIdentifier)
		}
	}
	all = slices.DeleteFunc(all, func(p pending) bool { return len(p.actions) == 0 || !filters.Match(p.attributes) })
	chosen, marker, err := page.Of(all, func(p pending) string { return p.arn }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.PendingMaintenanceActionsMessage{Marker: marker, PendingMaintenanceActions: []rds.ResourcePendingMaintenanceActions{}}
	for _, p := range chosen {
		out.PendingMaintenanceActions = append(out.PendingMaintenanceActions, *p.out())
	}
	return out, nil
}

func noResource(arn string) error {
	return look.OrBlank(strings.TrimSpace(arn), "ResourceIdentifier", wire.NewError(rds.ErrResourceNotFound, "The resource %s was not found, or has no maintenance of its own.", arn))
}

// applyPendingMaintenanceAction applies an action now, or notes it for the next window.
func (u *Upkeep) applyPendingMaintenanceAction(ctx context.Context, c front.Call, in *rds.ApplyPendingMaintenanceActionMessage) (*rds.ApplyPendingMaintenanceActionResult, error) {
	action, opt := wire.Or(in.ApplyAction, ""), wire.Or(in.OptInType, "")
	if !slices.Contains(maintenanceActions, action) {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid ApplyAction %s. Valid values: %s", action, strings.Join(maintenanceActions, ", "))
	}
	if opt != optNow && opt != optNext && opt != optOut {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid OptInType %s. Valid values: %s, %s, %s", opt, optNow, optNext, optOut)
	}
	arn := look.PlainARN(wire.Or(in.ResourceIdentifier, ""))
	out := &rds.ApplyPendingMaintenanceActionResult{}
	err := u.State.Retry(ctx, func() error {
		l := u.Of(c.Account)
		all := u.pendings(l.Look, c)
		at := slices.IndexFunc(all, func(p pending) bool { return p.arn == arn })
		if at < 0 {
			return noResource(wire.Or(in.ResourceIdentifier, ""))
		}
		has := all[at]
		n := slices.IndexFunc(has.actions, func(a rds.PendingMaintenanceAction) bool { return *a.Action == action })
		if n < 0 {
			return wire.NewError(rds.ErrResourceNotFound, "The resource %s has no pending maintenance action %s.", arn, action)
		}
		shown, err := u.optIn(ctx, l, c, arn, action, opt)
		if err != nil {
			return err
		}
		if opt == optNow {
			shown = has
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
func (u *Upkeep) optIn(ctx context.Context, l *database.Sight, c front.Call, arn, action, opt string) (pending, error) {
	w, err := u.find(l.Look, c, arn)
	switch {
	case err != nil:
		return pending{}, err
	case opt == optNow && action == spec.RotateCertificate:
		return pending{}, u.rotate(ctx, l, c, w)
	case opt == optNow:
		return pending{}, u.bringUp(ctx, l, c, w)
	}
	next := *w.Common
	next.OptIn(action, opt == optNext, c.Now)
	next.Generation++
	shown := w.subject
	shown.Common = &next
	return pendingOf(l.Look, c, shown, u.authorities()), u.State.Commit(ctx, w.put(next))
}

// find finds an instance or a cluster by its ARN.
func (u *Upkeep) find(l *look.Look, c front.Call, arn string) (ward, error) {
	if r, err := l.FindInstance(c.Scope, arn); err == nil {
		return u.instance(r), nil
	}
	r, err := l.FindCluster(c.Scope, arn)
	if err != nil {
		return ward{}, err
	}
	return u.cluster(r), nil
}
