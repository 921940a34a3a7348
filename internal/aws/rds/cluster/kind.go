// Package cluster is the part of RDS about DB clusters: Aurora clusters, to which users add
// instances, and Multi-AZ DB clusters, which have three of their own. Its actions check a request,
// change the record of a cluster, or show it with the truth about its processes. What a cluster
// and an instance are alike in is package database's.
package cluster

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Kind is how records of clusters are found, changed and written.
var Kind = &database.Kind[spec.Cluster]{
	Type: event.Cluster, Find: (*look.Look).FindCluster, Key: look.ClusterKey,
	Common: func(c *spec.Cluster) *spec.Common { return &c.Common },
	Status: (*look.Look).ClusterStatus, May: (*look.Look).MayCluster, Values: valuesOf, Possible: possible, CarryOut: carryOut,
	Finish: func(m *database.Modification, c *spec.Cluster) { m.Finish(&c.Common) },
}

type service struct{ *database.Source }

// Actions are those on clusters.
func Actions(from *database.Source) map[string]front.Action {
	s := &service{from}
	return map[string]front.Action{
		"AddRoleToDBCluster":      front.On(s.addRoleToDBCluster),
		"CreateDBCluster":         front.On(s.createDBCluster),
		"DeleteDBCluster":         front.On(s.deleteDBCluster),
		"DescribeDBClusters":      front.On(s.describeDBClusters),
		"FailoverDBCluster":       front.On(s.failoverDBCluster),
		"ModifyDBCluster":         front.On(s.modifyDBCluster),
		"RebootDBCluster":         front.On(s.rebootDBCluster),
		"RemoveRoleFromDBCluster": front.On(s.removeRoleFromDBCluster),
		"StartDBCluster":          front.On(s.startDBCluster),
		"StopDBCluster":           front.On(s.stopDBCluster),
	}
}

// change alters one cluster's record, and with it what change answers. It answers the cluster as
// the API shows it afterwards.
func (s *service) change(ctx context.Context, c front.Call, identifier *string, change func(*database.Sight, *spec.Cluster) ([]state.Op, error)) (*rds.DBCluster, error) {
	cluster, err := Kind.Change(ctx, s.Source, c, wire.Or(identifier, ""), change)
	return s.out(c, cluster, err)
}

// out is a cluster that was made or changed, as the API shows it.
func (s *service) out(c front.Call, cluster spec.Cluster, err error) (*rds.DBCluster, error) {
	if err != nil {
		return nil, err
	}
	return clusterOut(s.Of(c.Account), cluster), nil
}

// Tagged is a cluster, by its ARN, with its tags.
func Tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	return Kind.Tagged(l, scope, arn, func(c spec.Cluster) error { return look.ClusterState(c, plan.Deleting, plan.Available) })
}
