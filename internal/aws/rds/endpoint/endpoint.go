// Package endpoint is about the custom endpoints of Aurora clusters, and lists them with those that
// every cluster has. An endpoint is served by the edge; here are its record and the word for how
// far that has come.
package endpoint

import (
	"context"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/model/zone"
	"howdah/internal/state"
)

// Endpoints are the custom ones of a home. All fields are required.
type Endpoints struct {
	State *state.Client
	Looks *look.Source
	Pools *address.Pools
}

// Actions are those on custom endpoints.
func (s *Endpoints) Actions() map[string]front.Action {
	return map[string]front.Action{
		"CreateDBClusterEndpoint":    front.On(s.createDBClusterEndpoint),
		"DeleteDBClusterEndpoint":    front.On(s.deleteDBClusterEndpoint),
		"DescribeDBClusterEndpoints": front.On(s.describeDBClusterEndpoints),
		"ModifyDBClusterEndpoint":    front.On(s.modifyDBClusterEndpoint),
	}
}

// find finds a custom endpoint by name or ARN.
func find(l *look.Look, scope spec.Scope, identifier string) (state.Record[spec.Endpoint], error) {
	in, name := look.Locate(scope, identifier, "cluster-endpoint")
	record, err := state.Load[spec.Endpoint](l.Cache, state.Endpoint(in.Account, in.Region, name))
	if err != nil || in != scope {
		return record, look.OrBlank(name, "DBClusterEndpointIdentifier", wire.NewError(rds.ErrDBClusterEndpointNotFound, "DBClusterEndpoint %s not found.", name))
	}
	return record, nil
}

// Tagged is a custom endpoint, by its ARN, with its tags.
func Tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	r, err := find(l, scope, arn)
	t := look.Tagged{Tags: r.Value.Tags, Put: func(tags []spec.Tag) state.Op {
		e := r.Value
		e.Tags = tags
		e.Generation++
		return state.Swap(r.Key, r.Revision, e)
	}}
	if err == nil && r.Value.Deleting {
		t.Gone = wire.NewError(rds.ErrInvalidDBClusterEndpointState, "The DB cluster endpoint %s is being deleted.", r.Value.Name)
	}
	return t, err
}

// createDBClusterEndpoint makes an endpoint that leads to some instances of an
// Aurora cluster.
func (s *Endpoints) createDBClusterEndpoint(ctx context.Context, c front.Call, in *rds.CreateDBClusterEndpointMessage) (*rds.DBClusterEndpoint, error) {
	var made spec.Endpoint
	err := s.State.Retry(ctx, func() error {
		l := s.Looks.Of(c.Account)
		record, err := l.FindCluster(c.Scope, wire.Or(in.DBClusterIdentifier, ""))
		if err != nil {
			return err
		}
		cluster := record.Value
		e := spec.Endpoint{
			Scope: c.Scope, Name: wire.Lower(in.DBClusterEndpointIdentifier), ResourceID: look.NewResourceID("cluster-endpoint-"),
			Cluster: cluster.ResourceID, Type: wire.Or(in.EndpointType, ""), Generation: 1, Tags: look.TagsIn(in.Tags), Created: c.Now,
		}
		if err := mayHave(l, cluster, e); err != nil {
			return err
		}
		if err := setMembers(l, cluster, &e, in.StaticMembers, in.ExcludedMembers); err != nil {
			return err
		}
		address, claim, err := s.Pools.Claim(e.ResourceID, cluster.Public)
		if err != nil {
			return err
		}
		e.Address = address
		made = e
		// The cluster's record is written too, so that it cannot be deleted meanwhile.
		cluster.Generation++
		return s.State.Commit(ctx, state.Swap(look.EndpointKey(e), 0, e), claim, state.Swap(record.Key, record.Revision, cluster))
	})
	if err != nil {
		return nil, err
	}
	return out(s.Looks.Of(c.Account), made), nil
}

func mayHave(l *look.Look, c spec.Cluster, e spec.Endpoint) error {
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
	return look.First(spec.CheckName("DBClusterEndpointIdentifier", e.Name),
		l.Nameable("DBClusterEndpointIdentifier", []zone.Kind{zone.Custom}, e.Scope, e.Name), checkType(e.Type), spec.CheckTags(e.Tags))
}

func checkType(kind string) error {
	if kind != "READER" && kind != "ANY" {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid endpoint type: %s. A custom endpoint is READER or ANY.", kind)
	}
	return nil
}

// setMembers sets the one or the other list of an endpoint.
func setMembers(l *look.Look, c spec.Cluster, e *spec.Endpoint, static, excluded []string) error {
	if len(static) > 0 && len(excluded) > 0 {
		return wire.NewError(api.ErrInvalidParameterCombination, "StaticMembers and ExcludedMembers cannot be given together.")
	}
	if static == nil && excluded == nil {
		return nil
	}
	var err error
	if e.Static, err = memberIDs(l, c, static); err != nil {
		return err
	}
	e.Excluded, err = memberIDs(l, c, excluded)
	return err
}

func memberIDs(l *look.Look, c spec.Cluster, names []string) ([]string, error) {
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
func (s *Endpoints) modifyDBClusterEndpoint(ctx context.Context, c front.Call, in *rds.ModifyDBClusterEndpointMessage) (*rds.DBClusterEndpoint, error) {
	return s.change(ctx, c, wire.Or(in.DBClusterEndpointIdentifier, ""), func(l *look.Look, e *spec.Endpoint) error {
		wire.Set(&e.Type, in.EndpointType)
		return look.First(checkType(e.Type), setMembers(l, l.Cluster[e.Cluster], e, in.StaticMembers, in.ExcludedMembers))
	})
}

// deleteDBClusterEndpoint marks a custom endpoint as being deleted.
func (s *Endpoints) deleteDBClusterEndpoint(ctx context.Context, c front.Call, in *rds.DeleteDBClusterEndpointMessage) (*rds.DBClusterEndpoint, error) {
	return s.change(ctx, c, wire.Or(in.DBClusterEndpointIdentifier, ""), func(_ *look.Look, e *spec.Endpoint) error {
		e.Deleting = true
		return nil
	})
}

func (s *Endpoints) change(ctx context.Context, c front.Call, identifier string, change func(*look.Look, *spec.Endpoint) error) (*rds.DBClusterEndpoint, error) {
	var changed spec.Endpoint
	err := s.State.Retry(ctx, func() error {
		l := s.Looks.Of(c.Account)
		record, err := find(l, c.Scope, identifier)
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
		return s.State.Commit(ctx, state.Swap(record.Key, record.Revision, e))
	})
	if err != nil {
		return nil, err
	}
	return out(s.Looks.Of(c.Account), changed), nil
}
