package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
)

// Target is the instance or the cluster that a command works on.
type Target struct {
	API      *client.Client
	Name     string
	Instance *rds.DBInstance // or
	Cluster  *rds.DBCluster
}

// Find returns the instance or the cluster of a name. If two share the name, "instance/NAME" and
// "cluster/NAME" tell them apart.
func Find(ctx context.Context, api *client.Client, name string) (Target, error) {
	kind, bare, qualified := strings.Cut(name, "/")
	if !qualified {
		kind, bare = "", name
	}
	if qualified && kind != admin.KindInstance && kind != admin.KindCluster {
		return Target{}, fmt.Errorf("%q is neither NAME, instance/NAME nor cluster/NAME: %w", name, ErrUsage)
	}
	t := Target{API: api, Name: strings.ToLower(bare)}
	var err error
	if kind != admin.KindCluster {
		if t.Instance, err = DescribeInstance(ctx, api, t.Name); err != nil {
			return t, err
		}
	}
	if kind != admin.KindInstance {
		if t.Cluster, err = describeCluster(ctx, api, t.Name); err != nil {
			return t, err
		}
	}
	switch {
	case t.Instance == nil && t.Cluster == nil:
		return t, fmt.Errorf("there is no instance and no cluster %q: see howdah db list", t.Name)
	case t.Instance != nil && t.Cluster != nil:
		return t, fmt.Errorf("an instance and a cluster are called %q: say instance/%s or cluster/%s: %w", t.Name, t.Name, t.Name, ErrUsage)
	}
	return t, nil
}

// Find is find, asked of the API that a command speaks to.
func (o *Options) Find(cmd *cobra.Command, name string) (Target, error) {
	api, err := o.API(cmd)
	if err != nil {
		return Target{}, err
	}
	return Find(cmd.Context(), api, name)
}

// FindInstance returns an instance, for commands that clusters do not have.
func FindInstance(ctx context.Context, api *client.Client, name string) (Target, error) {
	t, err := Find(ctx, api, name)
	if err == nil && t.Instance == nil {
		err = fmt.Errorf("%s is a cluster, and this is for instances: %w", t.Name, ErrUsage)
	}
	return t, err
}

// DescribeInstance returns nil if there is no such instance.
func DescribeInstance(ctx context.Context, api *client.Client, name string) (*rds.DBInstance, error) {
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

// Refresh reads the target again. If the target is gone, it is neither an instance nor a cluster
// afterwards.
func (t *Target) Refresh(ctx context.Context) error {
	instance, cluster := t.Instance != nil, t.Cluster != nil
	var err error
	if instance {
		t.Instance, err = DescribeInstance(ctx, t.API, t.Name)
	}
	if cluster {
		t.Cluster, err = describeCluster(ctx, t.API, t.Name)
	}
	return err
}

// Kind is that of the admin API.
func (t *Target) Kind() string {
	if t.Cluster != nil {
		return admin.KindCluster
	}
	return admin.KindInstance
}

// Status is that of the API, or "" if the target is gone.
func (t *Target) Status() string {
	switch {
	case t.Instance != nil:
		return Value(t.Instance.DBInstanceStatus)
	case t.Cluster != nil:
		return Value(t.Cluster.Status)
	}
	return ""
}

// Truth returns what the admin API knows of the target's database, or nil. For an instance of a
// cluster it is that of the cluster.
func (t *Target) Truth(ctx context.Context) (*admin.Database, []admin.Problem, error) {
	var out admin.DatabaseAnswer
	if err := t.API.Admin(ctx, admin.VerbDatabase, admin.DatabaseRequest{Name: t.Name}, &out); err != nil {
		return nil, nil, err
	}
	wanted := t.ResourceID()
	for i := range out.Databases {
		d := &out.Databases[i]
		if d.ResourceID != wanted && !HasInstance(d, t.Name) {
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

// ResourceID is the ID that no other database ever has.
func (t *Target) ResourceID() string {
	switch {
	case t.Instance != nil:
		return Value(t.Instance.DbiResourceId)
	case t.Cluster != nil:
		return Value(t.Cluster.DbClusterResourceId)
	}
	return ""
}

// HasInstance reports whether an instance is a member of a database.
func HasInstance(d *admin.Database, name string) bool {
	for _, m := range d.Members {
		if m.Instance == name {
			return true
		}
	}
	return false
}

// Value returns what a pointer of an answer points to, or the zero value.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// AskStatus returns what the admin API says of everything.
func (o *Options) AskStatus(cmd *cobra.Command) (admin.Status, error) {
	return AskAdmin[admin.Status](cmd, o, admin.VerbStatus, admin.Nothing{})
}

// AskAdmin asks the control plane by a verb of the admin API, and returns its answer.
func AskAdmin[Out any](cmd *cobra.Command, o *Options, verb string, in any) (Out, error) {
	var out Out
	api, err := o.API(cmd)
	if err != nil {
		return out, err
	}
	return out, api.Admin(cmd.Context(), verb, in, &out)
}
