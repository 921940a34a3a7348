package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
)

// target is the instance or the cluster that a command works on.
type target struct {
	api      *client.Client
	name     string
	instance *rds.DBInstance // or
	cluster  *rds.DBCluster
}

// find returns the instance or the cluster of a name. If two share the name, "instance/NAME" and
// "cluster/NAME" tell them apart.
func find(ctx context.Context, api *client.Client, name string) (target, error) {
	kind, bare, qualified := strings.Cut(name, "/")
	if !qualified {
		kind, bare = "", name
	}
	if qualified && kind != admin.KindInstance && kind != admin.KindCluster {
		return target{}, fmt.Errorf("%q is neither NAME, instance/NAME nor cluster/NAME: %w", name, errUsage)
	}
	t := target{api: api, name: strings.ToLower(bare)}
	var err error
	if kind != admin.KindCluster {
		if t.instance, err = describeInstance(ctx, api, t.name); err != nil {
			return t, err
		}
	}
	if kind != admin.KindInstance {
		if t.cluster, err = describeCluster(ctx, api, t.name); err != nil {
			return t, err
		}
	}
	switch {
	case t.instance == nil && t.cluster == nil:
		return t, fmt.Errorf("there is no instance and no cluster %q: see howdah db list", t.name)
	case t.instance != nil && t.cluster != nil:
		return t, fmt.Errorf("an instance and a cluster are called %q: say instance/%s or cluster/%s: %w", t.name, t.name, t.name, errUsage)
	}
	return t, nil
}

// find is find, asked of the API that a command speaks to.
func (o *options) find(cmd *cobra.Command, name string) (target, error) {
	api, err := o.api(cmd)
	if err != nil {
		return target{}, err
	}
	return find(cmd.Context(), api, name)
}

// findInstance returns an instance, for commands that clusters do not have.
func findInstance(ctx context.Context, api *client.Client, name string) (target, error) {
	t, err := find(ctx, api, name)
	if err == nil && t.instance == nil {
		err = fmt.Errorf("%s is a cluster, and this is for instances: %w", t.name, errUsage)
	}
	return t, err
}

// describeInstance returns nil if there is no such instance.
func describeInstance(ctx context.Context, api *client.Client, name string) (*rds.DBInstance, error) {
	var out rds.DBInstanceMessage
	err := api.RDS(ctx, "DescribeDBInstances", &rds.DescribeDBInstancesMessage{DBInstanceIdentifier: &name}, &out)
	if client.IsCode(err, rds.ErrDBInstanceNotFound) {
		return nil, nil
	}
	if err != nil || len(out.DBInstances) == 0 {
		return nil, err
	}
	return &out.DBInstances[0], nil
}

// describeCluster returns nil if there is no such cluster.
func describeCluster(ctx context.Context, api *client.Client, name string) (*rds.DBCluster, error) {
	var out rds.DBClusterMessage
	err := api.RDS(ctx, "DescribeDBClusters", &rds.DescribeDBClustersMessage{DBClusterIdentifier: &name}, &out)
	if client.IsCode(err, rds.ErrDBClusterNotFound) {
		return nil, nil
	}
	if err != nil || len(out.DBClusters) == 0 {
		return nil, err
	}
	return &out.DBClusters[0], nil
}

// refresh reads the target again. If the target is gone, it is neither an instance nor a cluster
// afterwards.
func (t *target) refresh(ctx context.Context) error {
	instance, cluster := t.instance != nil, t.cluster != nil
	var err error
	if instance {
		t.instance, err = describeInstance(ctx, t.api, t.name)
	}
	if cluster {
		t.cluster, err = describeCluster(ctx, t.api, t.name)
	}
	return err
}

func (t *target) kind() string {
	if t.cluster != nil {
		return admin.KindCluster
	}
	return admin.KindInstance
}

func (t *target) status() string {
	switch {
	case t.instance != nil:
		return value(t.instance.DBInstanceStatus)
	case t.cluster != nil:
		return value(t.cluster.Status)
	}
	return ""
}

// truth returns what the admin API knows of the target's database, or nil. For an instance of a
// cluster it is that of the cluster.
func (t *target) truth(ctx context.Context) (*admin.Database, []admin.Problem, error) {
	var out admin.DatabaseAnswer
	if err := t.api.Admin(ctx, admin.VerbDatabase, admin.DatabaseRequest{Name: t.name}, &out); err != nil {
		return nil, nil, err
	}
	wanted := t.resourceID()
	for i := range out.Databases {
		d := &out.Databases[i]
		if d.ResourceID != wanted && !hasInstance(d, t.name) {
			continue
		}
		var own []admin.Problem
		for _, p := range out.Problems {
			if p.ResourceID == d.ResourceID {
				own = append(own, p)
			}
		}
		return d, own, nil
	}
	return nil, nil, nil
}

func (t *target) resourceID() string {
	switch {
	case t.instance != nil:
		return value(t.instance.DbiResourceId)
	case t.cluster != nil:
		return value(t.cluster.DbClusterResourceId)
	}
	return ""
}

func hasInstance(d *admin.Database, name string) bool {
	for _, m := range d.Members {
		if m.Instance == name {
			return true
		}
	}
	return false
}

// value returns what a pointer of an answer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func (o *options) askStatus(cmd *cobra.Command) (admin.Status, error) {
	var out admin.Status
	api, err := o.api(cmd)
	if err != nil {
		return out, err
	}
	return out, api.Admin(cmd.Context(), admin.VerbStatus, admin.Nothing{}, &out)
}
