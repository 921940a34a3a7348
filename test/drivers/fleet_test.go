package drivers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
)

// A kind of cluster, by what drivers take it for.
type kind struct {
	name      string
	instances []string
	create    func(*fleet) error
	dialect   func(language) string
	// ask has a server say which instance it is. knows is what it says of its cluster: who belongs to it.
	ask, knows string
}

var aurora = kind{
	name: "Aurora", instances: []string{"shop-1", "shop-2", "shop-3"},
	create:  func(f *fleet) error { return f.rig.CreateCluster(f.Context(), "shop", 3) },
	dialect: func(language) string { return "aurora-pg" },
	ask:     "SELECT aurora_db_instance_identifier()",
	knows: `SELECT string_agg(server_id, ' ' ORDER BY server_id) FROM aurora_replica_status()
		WHERE last_update_timestamp > now() - interval '5 seconds' HAVING count(*) FILTER (WHERE session_id = 'MASTER_SESSION_ID') = 1`,
}

var multiAZ = kind{
	name: "Multi-AZ", instances: []string{"shop-instance-1", "shop-instance-2", "shop-instance-3"},
	create:  func(f *fleet) error { return f.createMultiAZ("shop") },
	dialect: func(l language) string { return l.multiAZ },
	ask:     "SELECT split_part(endpoint, '.', 1) FROM rds_tools.show_topology() WHERE id = rds_tools.dbi_resource_id()",
	knows: `SELECT string_agg(split_part(endpoint, '.', 1), ' ' ORDER BY endpoint) FROM rds_tools.show_topology()
		HAVING bool_or(id = (SELECT rds_tools.multi_az_db_cluster_source_dbi_resource_id()))`,
}

// fleet is a rig with a cluster of three instances, and names for their endpoints.
type fleet struct {
	*testing.T
	kind
	rig      *rig.Rig
	database string
	writer   rds.DBCluster
	// What programs are told: the writer endpoint, the pattern of instances, and more.
	host, pattern string
	more          []string
}

// begin makes a fleet. names gives its endpoints names.
func begin(t *testing.T, k kind, change func(*rig.Options), names func(*fleet)) *fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "howdah-drivers-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	f := &fleet{T: t, kind: k}
	f.must(err)
	t.Cleanup(func() { testkit.Eventually(t, 30*time.Second, func() error { return os.RemoveAll(dir) }) })
	o := rig.Options{Binary: binary, Dir: dir}
	change(&o)
	f.rig, err = rig.Start(t.Context(), o)
	f.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			f.showRefusals(dir)
		}
		f.must(f.rig.Close())
	})
	f.must(k.create(f))
	f.describe()
	f.database = *f.writer.DbClusterResourceId
	names(f)
	f.settled()
	return f
}

// createMultiAZ makes a Multi-AZ DB cluster, and waits until its three instances are available.
func (f *fleet) createMultiAZ(name string) error {
	in := &rds.CreateDBClusterMessage{
		DBClusterIdentifier: &name, Engine: new("postgres"), DBClusterInstanceClass: new("db.m5.large"), AllocatedStorage: new(int32(20)), StorageType: new("gp3"),
		MasterUsername: new("app"), MasterUserPassword: new(rig.Password),
	}
	if err := f.rig.Call(f.Context(), "CreateDBCluster", in, &rds.CreateDBClusterResult{}); err != nil {
		return err
	}
	for _, instance := range f.instances {
		if err := f.rig.WaitStatus(f.Context(), instance, "available", 2*time.Minute); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) describe() {
	f.Helper()
	var err error
	f.writer, err = f.rig.Cluster(f.Context(), "shop")
	f.must(err)
}

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// refusals are in lines of agents about tokens, logins and what drivers ask, and in those of servers about logins.
var refusals = regexp.MustCompile(`token|logs in|answer logins|drivers|LDAP`)

func (f *fleet) showRefusals(dir string) {
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		name := filepath.Base(path)
		if !strings.HasPrefix(name, "agent") && !strings.HasPrefix(name, "postgresql.log") {
			return nil
		}
		text, _ := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if refusals.MatchString(line) {
				f.Log(strings.TrimSpace(line))
			}
		}
		return nil
	})
}

// inHosts gives the endpoints of a Howdah that has addresses alone names in a file like /etc/hosts.
func inHosts(f *fleet) {
	f.Helper()
	text := "127.0.0.1 localhost\n" + *f.writer.Endpoint + " shop." + domain + "\n" + *f.writer.ReaderEndpoint + " shop-ro." + domain + "\n"
	for _, name := range f.instances {
		testkit.Eventually(f.T, patience.For(time.Minute), func() error {
			config, err := f.rig.Config(f.Context(), name)
			if err == nil {
				text += config.Host + " " + name + "." + domain + "\n"
			}
			return err
		})
	}
	hosts := filepath.Join(f.rig.Dir, "hosts")
	f.must(os.WriteFile(hosts, []byte(text), 0o644))
	f.host, f.pattern, f.more = "shop."+domain, "?."+domain, []string{"DB_HOSTS=" + hosts}
}

// inZone waits for the names of the home's zone. Programs ask its nameserver, and verify certificates in full.
func inZone(f *fleet) {
	f.Helper()
	for _, instance := range f.instances {
		testkit.Eventually(f.T, patience.For(time.Minute), func() error {
			config, err := f.rig.Config(f.Context(), instance)
			if err == nil && !strings.HasSuffix(config.Host, "."+zoneName) {
				err = fmt.Errorf("%s is at %s", instance, config.Host)
			}
			if err == nil {
				_, rest, _ := strings.Cut(config.Host, ".")
				f.pattern = "?." + rest
			}
			return err
		})
	}
	f.describe()
	resolv := filepath.Join(f.rig.Dir, "resolv.conf")
	f.must(os.WriteFile(resolv, []byte("nameserver "+f.rig.Nameserver().Addr().String()+"\n"), 0o644))
	f.host, f.more = *f.writer.Endpoint, []string{"DB_RESOLV=" + resolv, "DB_CA=" + f.rig.Home.CAFile(), "DB_ZONE=" + zoneName}
}

// settled waits until all three run, and each of them knows that.
func (f *fleet) settled() {
	f.Helper()
	testkit.Eventually(f.T, patience.For(time.Minute), func() error { return f.rig.InSync(f.Context(), f.database, 2) })
	// Patroni lists for a moment those that were in sync before the failover. A primary that dies while
	// its predecessor is not back is a second fault.
	testkit.Eventually(f.T, patience.For(time.Minute), func() error {
		writer, _ := f.leader()
		n, err := f.askInstance(writer, "SELECT count(*)::text FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')")
		if err == nil && n != "2" {
			err = fmt.Errorf("commits on %s may be confirmed by %s members", writer, n)
		}
		return err
	})
	for _, instance := range f.instances {
		testkit.Eventually(f.T, patience.For(time.Minute), func() error {
			all, err := f.askInstance(instance, f.knows)
			if err == nil && all != strings.Join(f.instances, " ") {
				err = fmt.Errorf("%s knows: %s", instance, all)
			}
			return err
		})
	}
}

func (f *fleet) askInstance(instance, sql string) (text string, err error) {
	ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
	defer cancel()
	config, err := f.rig.Config(ctx, instance)
	if err != nil {
		return "", err
	}
	return query(ctx, config, sql)
}

func query(ctx context.Context, config *pgx.ConnConfig, sql string) (text string, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	return text, conn.QueryRow(ctx, sql).Scan(&text)
}

// exec runs statements at the writer.
func (f *fleet) exec(database string, statements ...string) {
	f.Helper()
	config, err := f.rig.ClusterConfig(f.Context(), "shop")
	f.must(err)
	config.Database = database
	conn, err := pgx.ConnectConfig(f.Context(), config)
	f.must(err)
	defer conn.Close(f.Context())
	for _, sql := range statements {
		_, err := conn.Exec(f.Context(), sql)
		f.must(err)
	}
}

// environment is what a program is told. Without plugins it uses the plain driver.
func (f *fleet) environment(l language, database, plugins string, more ...string) []string {
	all := append([]string{
		"DB_HOST=" + f.host, "DB_PORT=" + strconv.Itoa(int(*f.writer.Port)), "DB_NAME=" + database, "DB_USER=app", "DB_PASSWORD=" + rig.Password,
		"DB_PLUGINS=" + plugins, "DB_PATTERN=" + f.pattern, "DB_DIALECT=" + f.dialect(l), "DB_ASK=" + f.ask,
	}, f.more...)
	return append(all, more...)
}

// answers are what a program that ends by itself says.
func (f *fleet) answers(name string, command, environment []string) (all []string) {
	f.Helper()
	p := start(f.T, name, command, environment)
	select {
	case <-p.over:
	case <-time.After(patience.For(time.Minute)):
		f.Fatalf("%s does not end: %s", name, p.end())
	}
	for _, l := range p.all("is") {
		all = append(all, l.more)
	}
	if len(all) == 0 {
		f.Errorf("%s says: %s", name, p.end())
	}
	return all
}

func (f *fleet) leader() (instance string, m rig.Member) {
	f.Helper()
	m, err := f.rig.Leader(f.Context(), f.database)
	f.must(err)
	var out rds.DBInstanceMessage
	f.must(f.rig.Call(f.Context(), "DescribeDBInstances", &rds.DescribeDBInstancesMessage{}, &out))
	for _, i := range out.DBInstances {
		if *i.DbiResourceId == m.Seat {
			instance = *i.DBInstanceIdentifier
		}
	}
	return instance, m
}
