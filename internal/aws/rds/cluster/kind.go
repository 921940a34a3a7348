// Package cluster is the part of RDS about DB clusters: Aurora clusters, to which users add
// instances, and Multi-AZ DB clusters, which have three of their own. Its actions check a request,
// change the record of a cluster, or show it with the truth about its processes. What a cluster
// and an instance are alike in is package database's.
package cluster

import (
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
)

// Kind is how records of clusters are found, changed and written.
var Kind = &database.Kind[spec.Cluster]{
	Type: event.Cluster, Find: (*look.Look).FindCluster, Key: look.ClusterKey,
	Common: func(c *spec.Cluster) *spec.Common { return &c.Common },
	Status: (*look.Look).ClusterStatus, May: (*look.Look).MayCluster, Values: valuesOf, Possible: possible, CarryOut: carryOut,
	Finish: func(m *database.Modification, c *spec.Cluster) { m.Finish(&c.Common) },
}

type service struct {
	database.Service[spec.Cluster, rds.DBCluster]
}

// Actions are those on clusters.
func Actions(from *database.Source) map[string]front.Action {
	s := &service{database.Service[spec.Cluster, rds.DBCluster]{Source: from, Kind: Kind, Show: clusterOut}}
	return map[string]front.Action{
		"AddRoleToDBCluster":            front.On(s.addRoleToDBCluster),
		"CreateDBCluster":               front.On(s.createDBCluster),
		"DeleteDBCluster":               front.On(s.deleteDBCluster),
		"DescribeDBClusters":            front.On(s.describeDBClusters),
		"FailoverDBCluster":             front.On(s.failoverDBCluster),
		"ModifyDBCluster":               front.On(s.modifyDBCluster),
		"RebootDBCluster":               front.On(s.rebootDBCluster),
		"RestoreDBClusterFromSnapshot":  front.On(s.restoreDBClusterFromSnapshot),
		"RestoreDBClusterToPointInTime": front.On(s.restoreDBClusterToPointInTime),
		"RemoveRoleFromDBCluster":       front.On(s.removeRoleFromDBCluster),
		"StartDBCluster":                front.On(s.startDBCluster),
		"StopDBCluster":                 front.On(s.stopDBCluster),
	}
}

// Tagged is a cluster, by its ARN, with its tags.
func Tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	return Kind.Tagged(l, scope, arn, func(c spec.Cluster) error { return look.ClusterState(c, plan.Deleting, plan.Available) })
}
