package group

import (
	"maps"
	"slices"

	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// RDS's words for how far a parameter group is applied.
const (
	inSync  = "in-sync"
	applies = "applying"
)

// Want is the database of an instance, with the values of its groups, and its seat.
func Want(l *look.Look, i spec.Instance) (plan.Database, plan.Seat) {
	if c, ok := l.Cluster[i.Cluster]; ok {
		own := slices.DeleteFunc(l.InstancesOf(c.ResourceID), func(o spec.Instance) bool { return o.ResourceID == i.ResourceID })
		want := plan.ForCluster(c, append(own, i), plan.Links{Groups: l.Groups})
		return want, look.SeatOf(plan.Facts{Want: want}, i)
	}
	want := plan.ForInstance(i, l.Links(i))
	return want, want.Seats[0]
}

// Status is how far a group of an instance is applied: from what PostgreSQL says of itself through
// Patroni, and from what waits for a reboot by request.
func Status(l *look.Look, i spec.Instance, facts plan.Facts, kind param.Kind) string {
	asked, taken := i.ParameterGroup, i.Taken
	if kind == param.Cluster {
		asked, taken = l.Cluster[i.Cluster].ParameterGroup, i.ClusterTaken
	}
	status := inSync
	if l.Groups.Waiting(kind, i.Scope, asked, taken) {
		return pendingReboot
	}
	want, _ := Want(l, i)
	for m := range look.PlacesOf(i, facts) {
		switch memberStatus(l, want, facts, m) {
		case pendingReboot:
			return pendingReboot
		case applies:
			status = applies
		}
	}
	return status
}

// memberStatus says whether PostgreSQL of a member waits for a restart, or does not have its newest
// settings yet.
func memberStatus(l *look.Look, want plan.Database, facts plan.Facts, m plan.Placed) string {
	id := member.ID(want.ID, m.Name)
	seen, running := patroni.FindMember(l.Cache.Raw, want.ID, m.Name)
	assigned, errAssigned := state.Load[member.Assignment](l.Cache, state.Assign(m.Host, id))
	if !running || errAssigned != nil || !facts.Reports[id].Ready {
		return inSync // nothing runs that could differ
	}
	host, _ := state.Load[member.Host](l.Cache, state.Host(m.Host))
	wanted := plan.Assign(want, facts.Layout, m, host.Value.Memory)
	told := maps.Equal(wanted.Parameters, assigned.Value.Parameters) && wanted.RequireTLS == assigned.Value.RequireTLS
	switch {
	case !told || seen.Generation() < assigned.Value.Generation:
		return applies
	case seen.Waits():
		return pendingReboot
	}
	return inSync
}
