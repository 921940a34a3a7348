package endpoint

import (
	"context"
	"slices"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// out is a custom endpoint as the API shows it.
func out(l *look.Look, e spec.Endpoint) *rds.DBClusterEndpoint {
	c := l.Cluster[e.Cluster]
	return &rds.DBClusterEndpoint{
		DBClusterEndpointIdentifier: wire.Some(e.Name), DBClusterIdentifier: wire.Some(c.Name), DBClusterEndpointResourceIdentifier: wire.Some(e.ResourceID),
		Endpoint: wire.Some(l.EndpointHost(e)), Status: wire.Some(statusOf(l, e)), EndpointType: wire.Some("CUSTOM"), CustomEndpointType: wire.Some(e.Type),
		StaticMembers: namesOf(l, e.Static), ExcludedMembers: namesOf(l, e.Excluded), DBClusterEndpointArn: wire.Some(e.ARN("cluster-endpoint", e.Name)),
	}
}

// namesOf are the instances of a list that exist.
func namesOf(l *look.Look, ids []string) []string {
	names := []string{}
	for _, id := range ids {
		if i, ok := l.Instance[id]; ok {
			names = append(names, i.Name)
		}
	}
	return names
}

// Fresh is how long an endpoint waits for agents to renew certificates;
// later on it is not their generation that says whether its address is named.
const Fresh = time.Minute

// certified: the certificates of all members that run name the endpoint's address,
// so that clients who verify it can connect.
func certified(l *look.Look, e spec.Endpoint) bool {
	fresh := l.Now().Sub(e.Created) < Fresh
	for _, m := range l.FactsOfCluster(l.Cluster[e.Cluster]).Layout.Members {
		id := member.ID(e.Cluster, m.Name)
		a, err := state.Load[member.Assignment](l.Cache, state.Assign(m.Host, id))
		if err != nil || a.Value.Want != member.Running {
			continue
		}
		report, err := state.Load[member.Report](l.Cache, state.Report(m.Host, id))
		late := fresh && err == nil && report.Value.Ready && report.Value.Generation < a.Value.Generation
		if late || !slices.Contains(a.Value.ServerIPs, e.Address) {
			return false
		}
	}
	return true
}

// statusOf compares what is wanted with where the endpoint leads now.
func statusOf(l *look.Look, e spec.Endpoint) string {
	if e.Deleting || l.Cluster[e.Cluster].Deleting {
		return plan.Deleting
	}
	now, err := state.Load[route.Route](l.Cache, state.Route(e.ResourceID))
	if err != nil || len(e.Former) == 0 && !certified(l, e) {
		return plan.Creating
	}
	seats, readersOnly := e.Seats(l.InstancesOf(e.Cluster))
	if !slices.Equal(now.Value.Seats, seats) || now.Value.ReadersOnly != readersOnly || len(e.Former) > 0 {
		return plan.Modifying
	}
	return plan.Available
}

// describeDBClusterEndpoints lists the endpoints of clusters: the writer's, the
// readers', and the custom ones.
func (s *Endpoints) describeDBClusterEndpoints(ctx context.Context, c front.Call, in *rds.DescribeDBClusterEndpointsMessage) (*rds.DBClusterEndpointMessage, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := look.ReadFilters(in.Filters, "db-cluster-endpoint-type", "db-cluster-endpoint-custom-type", "db-cluster-endpoint-id", "db-cluster-endpoint-status")
	if err != nil {
		return nil, err
	}
	l := s.Looks.Of(c.Account)
	clusters := l.Clusters
	if in.DBClusterIdentifier != nil {
		record, err := l.FindCluster(c.Scope, *in.DBClusterIdentifier)
		if err != nil {
			return nil, err
		}
		clusters = []state.Record[spec.Cluster]{record}
	}
	var matching []rds.DBClusterEndpoint
	for _, r := range clusters {
		if r.Value.Scope != c.Scope {
			continue
		}
		for _, e := range allOf(l, r.Value) {
			wanted := in.DBClusterEndpointIdentifier == nil || wire.Lower(in.DBClusterEndpointIdentifier) == wire.Or(e.DBClusterEndpointIdentifier, "")
			if wanted && filters.Match(attributes(e)) {
				matching = append(matching, e)
			}
		}
	}
	chosen, marker, err := page.Of(matching, order, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	return &rds.DBClusterEndpointMessage{Marker: marker, DBClusterEndpoints: wire.List(chosen)}, nil
}

// allOf of a cluster, in the order of order.
func allOf(l *look.Look, c spec.Cluster) []rds.DBClusterEndpoint {
	status := plan.Available
	switch word := l.ClusterStatus(c); {
	case word == plan.Creating, word == plan.Deleting, word == plan.Modifying && c.Moving():
		status = word
	}
	all := []rds.DBClusterEndpoint{
		{DBClusterIdentifier: wire.Some(c.Name), Endpoint: wire.Some(l.WriterHost(c)), Status: wire.Some(status), EndpointType: wire.Some("WRITER")},
		{DBClusterIdentifier: wire.Some(c.Name), Endpoint: wire.Some(l.ReaderHost(c)), Status: wire.Some(status), EndpointType: wire.Some("READER")},
	}
	for _, e := range l.EndpointsOf(c.ResourceID) {
		all = append(all, *out(l, e.Value))
	}
	return all
}

// order is a key that sorts the endpoints of clusters as they are listed:
// the separator comes before all that names have.
func order(e rds.DBClusterEndpoint) string {
	rank := map[string]string{"WRITER": "1", "READER": "2", "CUSTOM": "3"}[wire.Or(e.EndpointType, "")]
	return wire.Or(e.DBClusterIdentifier, "") + "\x00" + rank + wire.Or(e.DBClusterEndpointIdentifier, "")
}

func attributes(e rds.DBClusterEndpoint) map[string][]string {
	one := func(p *string) []string {
		if p == nil {
			return nil
		}
		return []string{*p}
	}
	return map[string][]string{
		"db-cluster-endpoint-type": one(e.EndpointType), "db-cluster-endpoint-custom-type": one(e.CustomEndpointType),
		"db-cluster-endpoint-id": append(one(e.DBClusterEndpointIdentifier), one(e.DBClusterEndpointArn)...), "db-cluster-endpoint-status": one(e.Status),
	}
}
