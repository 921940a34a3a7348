package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// endpointActions are those on custom endpoints.
func (s *Server) endpointActions() map[string]front.Action {
	return map[string]front.Action{
		"CreateDBClusterEndpoint":    front.On(s.createDBClusterEndpoint),
		"DeleteDBClusterEndpoint":    front.On(s.deleteDBClusterEndpoint),
		"DescribeDBClusterEndpoints": front.On(s.describeDBClusterEndpoints),
		"ModifyDBClusterEndpoint":    front.On(s.modifyDBClusterEndpoint),
	}
}

// findEndpoint finds a custom endpoint by name or ARN.
func (l *sight) findEndpoint(scope spec.Scope, identifier string) (state.Record[spec.Endpoint], error) {
	in, name := look.Locate(scope, identifier, "cluster-endpoint")
	record, err := state.Load[spec.Endpoint](l.Cache, state.Endpoint(in.Account, in.Region, name))
	if err != nil || in != scope {
		return record, look.OrBlank(name, "DBClusterEndpointIdentifier", wire.NewError(rds.ErrDBClusterEndpointNotFound, "DBClusterEndpoint %s not found.", name))
	}
	return record, nil
}

// createDBClusterEndpoint makes an endpoint that leads to some instances of an
// Aurora cluster.
func (s *Server) createDBClusterEndpoint(ctx context.Context, c front.Call, in *rds.CreateDBClusterEndpointMessage) (*rds.DBClusterEndpoint, error) {
	var made spec.Endpoint
	err := s.client.Retry(ctx, func() error {
		l := s.look(c.Account)
		record, err := l.FindCluster(c.Scope, wire.Or(in.DBClusterIdentifier, ""))
		if err != nil {
			return err
		}
		cluster := record.Value
		e := spec.Endpoint{
			Scope: c.Scope, Name: wire.Lower(in.DBClusterEndpointIdentifier), ResourceID: look.NewResourceID("cluster-endpoint-"),
			Cluster: cluster.ResourceID, Type: wire.Or(in.EndpointType, ""), Generation: 1, Tags: look.TagsIn(in.Tags), Created: c.Now,
		}
		if err := l.mayHaveEndpoint(cluster, e); err != nil {
			return err
		}
		if err := l.setMembers(cluster, &e, in.StaticMembers, in.ExcludedMembers); err != nil {
			return err
		}
		address, claim, err := s.pools.Claim(e.ResourceID, cluster.Public)
		if err != nil {
			return err
		}
		e.Address = address
		made = e
		// The cluster's record is written too, so that it cannot be deleted meanwhile.
		cluster.Generation++
		return s.client.Commit(ctx, state.Swap(look.EndpointKey(e), 0, e), claim, state.Swap(record.Key, record.Revision, cluster))
	})
	if err != nil {
		return nil, err
	}
	return s.look(c.Account).endpointOut(made), nil
}

func (l *sight) mayHaveEndpoint(c spec.Cluster, e spec.Endpoint) error {
	if _, _, taken := l.Cache.Raw(look.EndpointKey(e)); taken {
		return wire.NewError(rds.ErrDBClusterEndpointAlreadyExists, "DB Cluster Endpoint already exists")
	}
	switch status := l.ClusterStatus(c); {
	case c.MultiAZ():
		return wire.NewError(api.ErrInvalidParameterCombination, "Custom endpoints are only available for Aurora DB clusters: %s is a Multi-AZ DB cluster.", c.Name)
	case status == plan.Deleting:
		return look.ClusterState(c, status, plan.Available)
	case len(l.EndpointsOf(c.ResourceID)) >= look.MaxEndpoints:
		return wire.NewError(rds.ErrDBClusterEndpointQuotaExceeded, "The DB cluster %s has %d custom endpoints already.", c.Name, look.MaxEndpoints)
	}
	return look.First(spec.CheckName("DBClusterEndpointIdentifier", e.Name), checkEndpointType(e.Type), spec.CheckTags(e.Tags))
}

func checkEndpointType(kind string) error {
	if kind != "READER" && kind != "ANY" {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid endpoint type: %s. A custom endpoint is READER or ANY.", kind)
	}
	return nil
}

// setMembers sets the one or the other list of an endpoint.
func (l *sight) setMembers(c spec.Cluster, e *spec.Endpoint, static, excluded []string) error {
	if len(static) > 0 && len(excluded) > 0 {
		return wire.NewError(api.ErrInvalidParameterCombination, "StaticMembers and ExcludedMembers cannot be given together.")
	}
	if static == nil && excluded == nil {
		return nil
	}
	var err error
	if e.Static, err = l.memberIDs(c, static); err != nil {
		return err
	}
	e.Excluded, err = l.memberIDs(c, excluded)
	return err
}

func (l *sight) memberIDs(c spec.Cluster, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		if strings.TrimSpace(name) == "" {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "The parameters StaticMembers and ExcludedMembers must not have blank elements.")
		}
		r, err := l.FindInstance(c.Scope, name)
		if err != nil {
			return nil, err
		}
		if r.Value.Cluster != c.ResourceID {
			return nil, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is not in the DB cluster %s.", r.Value.Name, c.Name)
		}
		if !slices.Contains(ids, r.Value.ResourceID) {
			ids = append(ids, r.Value.ResourceID)
		}
	}
	return ids, nil
}

// modifyDBClusterEndpoint changes the type or the members of a custom endpoint.
func (s *Server) modifyDBClusterEndpoint(ctx context.Context, c front.Call, in *rds.ModifyDBClusterEndpointMessage) (*rds.DBClusterEndpoint, error) {
	return s.changeEndpoint(ctx, c, wire.Or(in.DBClusterEndpointIdentifier, ""), func(l *sight, e *spec.Endpoint) error {
		wire.Set(&e.Type, in.EndpointType)
		return look.First(checkEndpointType(e.Type), l.setMembers(l.Cluster[e.Cluster], e, in.StaticMembers, in.ExcludedMembers))
	})
}

// deleteDBClusterEndpoint marks a custom endpoint as being deleted.
func (s *Server) deleteDBClusterEndpoint(ctx context.Context, c front.Call, in *rds.DeleteDBClusterEndpointMessage) (*rds.DBClusterEndpoint, error) {
	return s.changeEndpoint(ctx, c, wire.Or(in.DBClusterEndpointIdentifier, ""), func(_ *sight, e *spec.Endpoint) error {
		e.Deleting = true
		return nil
	})
}

func (s *Server) changeEndpoint(ctx context.Context, c front.Call, identifier string, change func(*sight, *spec.Endpoint) error) (*rds.DBClusterEndpoint, error) {
	var changed spec.Endpoint
	err := s.client.Retry(ctx, func() error {
		l := s.look(c.Account)
		record, err := l.findEndpoint(c.Scope, identifier)
		if err != nil {
			return err
		}
		e := record.Value
		if e.Deleting {
			return wire.NewError(rds.ErrInvalidDBClusterEndpointState, "The DB cluster endpoint %s is being deleted.", e.Name)
		}
		if err := change(l, &e); err != nil {
			return err
		}
		e.Generation++
		changed = e
		return s.client.Commit(ctx, state.Swap(record.Key, record.Revision, e))
	})
	if err != nil {
		return nil, err
	}
	return s.look(c.Account).endpointOut(changed), nil
}

// endpointOut is a custom endpoint as the API shows it.
func (l *sight) endpointOut(e spec.Endpoint) *rds.DBClusterEndpoint {
	c := l.Cluster[e.Cluster]
	return &rds.DBClusterEndpoint{
		DBClusterEndpointIdentifier: wire.Some(e.Name), DBClusterIdentifier: wire.Some(c.Name), DBClusterEndpointResourceIdentifier: wire.Some(e.ResourceID),
		Endpoint: wire.Some(address.ServedAt(e.Address, e.Former)), Status: wire.Some(l.endpointStatus(e)), EndpointType: wire.Some("CUSTOM"), CustomEndpointType: wire.Some(e.Type),
		StaticMembers: l.namesOf(e.Static), ExcludedMembers: l.namesOf(e.Excluded), DBClusterEndpointArn: wire.Some(e.ARN("cluster-endpoint", e.Name)),
	}
}

// namesOf are the instances of a list that exist.
func (l *sight) namesOf(ids []string) []string {
	names := []string{}
	for _, id := range ids {
		if i, ok := l.Instance[id]; ok {
			names = append(names, i.Name)
		}
	}
	return names
}

// newEndpoint is how long an endpoint waits for agents to renew certificates;
// later on it is not their generation that says whether its address is named.
const newEndpoint = time.Minute

// certified: the certificates of all members that run name the endpoint's address,
// so that clients who verify it can connect.
func (l *sight) certified(e spec.Endpoint) bool {
	fresh := l.Now().Sub(e.Created) < newEndpoint
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

// endpointStatus compares what is wanted with where the endpoint leads now.
func (l *sight) endpointStatus(e spec.Endpoint) string {
	if e.Deleting || l.Cluster[e.Cluster].Deleting {
		return plan.Deleting
	}
	now, err := state.Load[route.Route](l.Cache, state.Route(e.ResourceID))
	if err != nil || len(e.Former) == 0 && !l.certified(e) {
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
func (s *Server) describeDBClusterEndpoints(ctx context.Context, c front.Call, in *rds.DescribeDBClusterEndpointsMessage) (*rds.DBClusterEndpointMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := look.ReadFilters(in.Filters, "db-cluster-endpoint-type", "db-cluster-endpoint-custom-type", "db-cluster-endpoint-id", "db-cluster-endpoint-status")
	if err != nil {
		return nil, err
	}
	l := s.look(c.Account)
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
		for _, e := range l.allEndpoints(r.Value) {
			wanted := in.DBClusterEndpointIdentifier == nil || wire.Lower(in.DBClusterEndpointIdentifier) == wire.Or(e.DBClusterEndpointIdentifier, "")
			if wanted && filters.Match(endpointAttributes(e)) {
				matching = append(matching, e)
			}
		}
	}
	chosen, marker, err := page.Of(matching, endpointOrder, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	return &rds.DBClusterEndpointMessage{Marker: marker, DBClusterEndpoints: wire.List(chosen)}, nil
}

// allEndpoints of a cluster, in the order of endpointOrder.
func (l *sight) allEndpoints(c spec.Cluster) []rds.DBClusterEndpoint {
	status := plan.Available
	switch word := l.ClusterStatus(c); {
	case word == plan.Creating, word == plan.Deleting, word == plan.Modifying && c.Moving():
		status = word
	}
	all := []rds.DBClusterEndpoint{
		{DBClusterIdentifier: wire.Some(c.Name), Endpoint: wire.Some(c.ServedAt()), Status: wire.Some(status), EndpointType: wire.Some("WRITER")},
		{DBClusterIdentifier: wire.Some(c.Name), Endpoint: wire.Some(address.ServedAt(c.ReaderAddress, c.ReaderFormer)), Status: wire.Some(status), EndpointType: wire.Some("READER")},
	}
	for _, e := range l.EndpointsOf(c.ResourceID) {
		all = append(all, *l.endpointOut(e.Value))
	}
	return all
}

// endpointOrder is a key that sorts the endpoints of clusters as they are listed:
// the separator comes before all that names have.
func endpointOrder(e rds.DBClusterEndpoint) string {
	rank := map[string]string{"WRITER": "1", "READER": "2", "CUSTOM": "3"}[wire.Or(e.EndpointType, "")]
	return wire.Or(e.DBClusterIdentifier, "") + "\x00" + rank + wire.Or(e.DBClusterEndpointIdentifier, "")
}

func endpointAttributes(e rds.DBClusterEndpoint) map[string][]string {
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
