package db

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newDBList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List DB instances and DB clusters", Args: cli.Args(cobra.NoArgs), Aliases: []string{"ls"},
		Example: "  howdah db list\n  howdah db list -o json | jq -r '.[].endpoint'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			views, err := listDatabases(cmd.Context(), api)
			if err != nil {
				return err
			}
			return o.Print(views, func() error { return listText(o, views) })
		},
	}
}

// dbView is an instance or a cluster in lists and as the result of commands.
type dbView struct {
	Kind           string    `json:"kind"`
	Name           string    `json:"name"`
	Status         string    `json:"status"`
	Engine         string    `json:"engine"`
	EngineVersion  string    `json:"engine_version"`
	Class          string    `json:"class,omitempty"`
	StorageGiB     int       `json:"storage_gib,omitempty"`
	MultiAZ        bool      `json:"multi_az"`
	Endpoint       string    `json:"endpoint,omitempty"` // ip:port
	ReaderEndpoint string    `json:"reader_endpoint,omitempty"`
	Cluster        string    `json:"cluster,omitempty"` // that an instance is in
	Writer         bool      `json:"writer,omitempty"`  // of its cluster
	Follows        string    `json:"follows,omitempty"`
	MasterUser     string    `json:"master_user,omitempty"`
	MasterSecret   string    `json:"master_secret,omitempty"` // ARN of the password, if it is managed
	DBName         string    `json:"db_name,omitempty"`
	Pending        []string  `json:"pending,omitempty"` // what waits for the maintenance window
	ARN            string    `json:"arn"`
	ResourceID     string    `json:"resource_id"`
	Created        time.Time `json:"created"`
}

// viewOf returns what to show of the target of a command.
func viewOf(t *cli.Target) dbView {
	switch {
	case t.Instance != nil:
		return instanceView(*t.Instance)
	case t.Cluster != nil:
		return clusterView(*t.Cluster)
	}
	return dbView{Name: t.Name, Status: cli.Gone}
}

func instanceView(i rds.DBInstance) dbView {
	v := dbView{
		Kind: admin.KindInstance, Name: cli.Value(i.DBInstanceIdentifier), Status: cli.Value(i.DBInstanceStatus),
		Engine: cli.Value(i.Engine), EngineVersion: cli.Value(i.EngineVersion), Class: cli.Value(i.DBInstanceClass),
		StorageGiB: int(cli.Value(i.AllocatedStorage)), MultiAZ: cli.Value(i.MultiAZ), Cluster: cli.Value(i.DBClusterIdentifier),
		Follows:    cmp.Or(cli.Value(i.ReadReplicaSourceDBInstanceIdentifier), cli.Value(i.ReadReplicaSourceDBClusterIdentifier)),
		MasterUser: cli.Value(i.MasterUsername), MasterSecret: secretARN(i.MasterUserSecret), DBName: cli.Value(i.DBName),
		ARN: cli.Value(i.DBInstanceArn), ResourceID: cli.Value(i.DbiResourceId), Created: cli.Value(i.InstanceCreateTime),
	}
	v.Pending = pendingNames(&i)
	if i.Endpoint != nil {
		v.Endpoint = fmt.Sprintf("%s:%d", cli.Value(i.Endpoint.Address), cli.Value(i.Endpoint.Port))
	}
	return v
}

func clusterView(c rds.DBCluster) dbView {
	v := dbView{
		Kind: admin.KindCluster, Name: cli.Value(c.DBClusterIdentifier), Status: cli.Value(c.Status),
		Engine: cli.Value(c.Engine), EngineVersion: cli.Value(c.EngineVersion), Class: cli.Value(c.DBClusterInstanceClass),
		StorageGiB: int(cli.Value(c.AllocatedStorage)), MultiAZ: cli.Value(c.MultiAZ),
		MasterUser: cli.Value(c.MasterUsername), MasterSecret: secretARN(c.MasterUserSecret), DBName: cli.Value(c.DatabaseName),
		ARN: cli.Value(c.DBClusterArn), ResourceID: cli.Value(c.DbClusterResourceId), Created: cli.Value(c.ClusterCreateTime),
	}
	if c.Endpoint != nil {
		v.Endpoint = fmt.Sprintf("%s:%d", *c.Endpoint, cli.Value(c.Port))
	}
	if c.ReaderEndpoint != nil {
		v.ReaderEndpoint = fmt.Sprintf("%s:%d", *c.ReaderEndpoint, cli.Value(c.Port))
	}
	return v
}

// listDatabases lists all by name: each cluster, followed by its instances, and the other
// instances.
func listDatabases(ctx context.Context, api *client.Client) ([]dbView, error) {
	clusters, err := allClusters(ctx, api)
	if err != nil {
		return nil, err
	}
	instances, err := allInstances(ctx, api)
	if err != nil {
		return nil, err
	}
	writers := map[string]bool{}
	views := []dbView{}
	for _, c := range clusters {
		views = append(views, clusterView(c))
		for _, m := range c.DBClusterMembers {
			if cli.Value(m.IsClusterWriter) {
				writers[cli.Value(m.DBInstanceIdentifier)] = true
			}
		}
	}
	for _, i := range instances {
		v := instanceView(i)
		v.Writer = v.Cluster != "" && writers[v.Name]
		views = append(views, v)
	}
	slices.SortStableFunc(views, func(a, b dbView) int {
		return cmp.Or(cmp.Compare(a.top(), b.top()), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Name, b.Name))
	})
	return views, nil
}

// top is the name that an entry is listed by.
func (v dbView) top() string { return cmp.Or(v.Cluster, v.Name) }

// rank puts a cluster before its instances, and an instance of the same name
// before both.
func (v dbView) rank() int {
	switch {
	case v.Cluster != "":
		return 2
	case v.Kind == admin.KindCluster:
		return 1
	}
	return 0
}

func allInstances(ctx context.Context, api *client.Client) ([]rds.DBInstance, error) {
	var all []rds.DBInstance
	in := &rds.DescribeDBInstancesMessage{}
	for {
		var out rds.DBInstanceMessage
		if err := api.RDS(ctx, "DescribeDBInstances", in, &out); err != nil {
			return nil, err
		}
		all = append(all, out.DBInstances...)
		if cli.Value(out.Marker) == "" {
			return all, nil
		}
		in.Marker = out.Marker
	}
}

func allClusters(ctx context.Context, api *client.Client) ([]rds.DBCluster, error) {
	var all []rds.DBCluster
	in := &rds.DescribeDBClustersMessage{}
	for {
		var out rds.DBClusterMessage
		if err := api.RDS(ctx, "DescribeDBClusters", in, &out); err != nil {
			return nil, err
		}
		all = append(all, out.DBClusters...)
		if cli.Value(out.Marker) == "" {
			return all, nil
		}
		in.Marker = out.Marker
	}
}

func listText(o *cli.Options, views []dbView) error {
	if len(views) == 0 {
		o.Say("There are no databases: create one with %s", o.Pasteable("howdah db create NAME"))
		return nil
	}
	var t screen.Table
	t.Head("NAME", "KIND", "STATUS", "ENGINE", "CLASS", "STORAGE", "AZ", "ENDPOINT", "READER")
	for _, v := range views {
		name, storage := v.Name, ""
		if v.Cluster != "" {
			name = "  " + name
		}
		if v.StorageGiB > 0 && v.Cluster == "" {
			storage = fmt.Sprintf("%d GiB", v.StorageGiB)
		}
		t.Row(name, v.role(), StatusCell(v.Status), v.Engine+" "+v.EngineVersion, v.Class, storage, v.az(), v.Endpoint, v.ReaderEndpoint)
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

// role returns the kind of a database, or what an instance is in its cluster or to another
// database.
func (v dbView) role() string {
	switch {
	case v.Writer:
		return "writer"
	case v.Cluster != "":
		return "reader"
	case v.Follows != "":
		return "replica of " + v.Follows
	}
	return v.Kind
}

func (v dbView) az() string {
	if v.Cluster != "" || v.Kind == admin.KindCluster && !v.MultiAZ {
		return ""
	}
	return azText(v.MultiAZ)
}

// StatusCell gives RDS's status words the colours of rest, work and trouble.
func StatusCell(status string) screen.Cell {
	style := screen.Yellow
	switch status {
	case "available":
		style = screen.Green
	case "stopped":
		style = screen.Dim
	case "storage-full", "insufficient-capacity", "failed":
		style = screen.Red
	}
	return screen.Cell{Text: status, Style: style}
}

func secretARN(s *rds.MasterUserSecret) string {
	if s == nil {
		return ""
	}
	return cli.Value(s.SecretArn)
}
