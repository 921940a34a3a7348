package rig

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
)

// Cluster describes one DB cluster.
func (r *Rig) Cluster(ctx context.Context, name string) (rds.DBCluster, error) {
	var out rds.DBClusterMessage
	if err := r.Call(ctx, "DescribeDBClusters", &rds.DescribeDBClustersMessage{DBClusterIdentifier: &name}, &out); err != nil {
		return rds.DBCluster{}, err
	}
	return out.DBClusters[0], nil
}

// CreateCluster makes an Aurora cluster with this many instances, name-1 first. It waits until all
// of them are available.
func (r *Rig) CreateCluster(ctx context.Context, name string, instances int) error {
	in := &rds.CreateDBClusterMessage{
		DBClusterIdentifier: &name, Engine: new("aurora-postgresql"),
		MasterUsername: new("app"), MasterUserPassword: new(Password),
	}
	if err := r.Call(ctx, "CreateDBCluster", in, &rds.CreateDBClusterResult{}); err != nil {
		return err
	}
	for n := range instances {
		member := fmt.Sprintf("%s-%d", name, n+1)
		in := &rds.CreateDBInstanceMessage{
			DBInstanceIdentifier: &member, DBClusterIdentifier: &name, Engine: new("aurora-postgresql"),
			DBInstanceClass: new("db.t3.micro"),
		}
		if err := r.Call(ctx, "CreateDBInstance", in, &rds.CreateDBInstanceResult{}); err != nil {
			return err
		}
		if err := r.WaitStatus(ctx, member, "available", time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// ClusterConfig returns a configuration for connections through the writer endpoint of a cluster.
func (r *Rig) ClusterConfig(ctx context.Context, name string) (*pgx.ConnConfig, error) {
	c, err := r.Cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.ConfigAt(*c.Endpoint, int(*c.Port))
}
