package status

import (
	"fmt"
	"slices"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// databaseOut returns what to show of a database.
func (s *service) databaseOut(d database.Subject, backups Backups) admin.Database {
	out := admin.Database{
		Kind: admin.KindInstance, Name: d.Common.Name, Account: d.Common.Account, Region: d.Common.Region,
		ResourceID: d.Common.ResourceID, Engine: d.Common.Engine, Version: d.Common.Version,
		MasterUser: d.Common.MasterUser, DBName: d.Common.DBName, Created: d.Common.Created,
		Protected: d.Common.DeletionProtection, Cold: d.Layout.Cold, Abandoned: d.Layout.Abandoned, SyncMode: string(plan.SyncMode(d.Want, d.Layout)),
		Endpoints: s.endpointsOut(d), Members: []admin.Member{}, Steps: stepsOut(d.Layout.Steps),
		Replaced: d.Common.Replaced, HostKeys: len(d.Layout.Members) > 0 && !d.Layout.OnlyOwnKeys, Backups: backups.Short(d),
	}
	if i := d.Instance; i != nil {
		out.Status = s.instanceStatus(*i)
		out.Class, out.MultiAZ, out.Follows, out.Waiting = i.Class, i.MultiAZ, s.sourceName(*i), i.Pending != nil
		out.StorageGiB, out.StorageType, out.IOPS = i.Storage, i.StorageType, i.IOPS
	}
	if c := d.Cluster; c != nil {
		out.Kind, out.Status, out.MultiAZ = admin.KindCluster, d.DatabaseStatus(), c.MultiAZ()
		out.Class, out.StorageGiB, out.StorageType, out.IOPS = c.Class, c.Storage, c.StorageType, c.IOPS
	}
	primary := s.position(d.Want.ID, d.Leader)
	for _, m := range d.Layout.Members {
		out.Members = append(out.Members, s.memberOut(d, m, primary))
	}
	return out
}

// sourceName returns the name of the database that an instance follows.
func (s *service) sourceName(i spec.Instance) string {
	if !i.Follows() {
		return ""
	}
	for _, other := range state.LoadAll[spec.Instance](s.Cache, state.Instance(i.Account, i.Region, "")) {
		if other.Value.ResourceID == i.Source {
			return other.Value.Name
		}
	}
	for _, c := range state.LoadAll[spec.Cluster](s.Cache, state.Cluster(i.Account, i.Region, "")) {
		if c.Value.ResourceID == i.Source {
			return c.Value.Name
		}
	}
	return i.Source
}

// instanceStatus returns the status word of any instance.
func (s *service) instanceStatus(i spec.Instance) string { return s.Looks.Of(i.Account).Status(i) }

// stepsOut returns the stages of what is going on.
func stepsOut(steps []plan.Step) []admin.Step {
	out := []admin.Step{}
	for _, s := range steps {
		out = append(out, admin.Step{Name: s.Name, Began: s.Began})
	}
	return out
}

func fenceOut(d database.Subject, c fence.Case) admin.Fence {
	return admin.Fence{
		Database: d.Common.Name, Phase: string(c.Phase), Host: c.Host, Member: c.Leadership.Leader,
		Opened: c.Opened, Evidence: c.Evidence, Method: c.Proof.Method, Proof: c.Proof.Text,
	}
}

// endpointsOut returns the addresses of a database, and where each leads by what is known here. The
// edges decide that in the same way.
func (s *service) endpointsOut(d database.Subject) []admin.Endpoint {
	view := route.View{Serving: map[string]bool{}}
	for _, m := range d.Layout.Members {
		report := d.Reports[member.ID(d.Want.ID, m.Name)]
		ready := memberState(d, m, report) == stateReady
		view.Serving[m.Name] = ready && report.Streaming
		if m.Name == d.Leader && ready {
			view.Leader = m.Name
		}
	}
	out := []admin.Endpoint{}
	for _, record := range state.LoadAll[route.Route](s.Cache, state.RouteRoot) {
		if r := record.Value; r.Database == d.Want.ID {
			kind, name := s.endpointName(d, r)
			out = append(out, admin.Endpoint{Kind: kind, Name: name, Address: r.Listen, Host: r.Name, LeadsTo: leadsTo(r, view)})
		}
	}
	if len(out) == 0 && d.Common.Address != "" {
		// It has no route yet. Its address is already decided.
		address := fmt.Sprintf("%s:%d", d.Common.Address, d.Common.Port)
		out = append(out, admin.Endpoint{Kind: admin.EndpointWriter, Name: d.Common.Name, Address: address, LeadsTo: []string{}})
	}
	order := []string{admin.EndpointWriter, admin.EndpointReader, admin.EndpointInstance, admin.EndpointCustom}
	slices.SortStableFunc(out, func(a, b admin.Endpoint) int {
		return slices.Index(order, a.Kind) - slices.Index(order, b.Kind)
	})
	return out
}

func leadsTo(r route.Route, view route.View) []string {
	targets := r.Targets(view)
	names := []string{}
	for _, m := range r.Members {
		if slices.Contains(targets, m.Address) {
			names = append(names, m.Name)
		}
	}
	return names
}

// endpointName tells the endpoints of a database apart by their ids.
func (s *service) endpointName(d database.Subject, r route.Route) (kind, name string) {
	switch r.Kind {
	case route.Leader:
		return admin.EndpointWriter, d.Common.Name
	case route.Readers:
		return admin.EndpointReader, d.Common.Name
	case route.Seats:
	}
	if instance := d.SeatName(r.ID); instance != "" {
		return admin.EndpointInstance, instance
	}
	for _, e := range state.LoadAll[spec.Endpoint](s.Cache, state.EndpointRoot) {
		if e.Value.ResourceID == r.ID {
			return admin.EndpointCustom, e.Value.Name
		}
	}
	return admin.EndpointCustom, r.ID
}
