package drivers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// fleet is a rig with a cluster of three instances, and names for their endpoints.
type fleet struct {
	*testing.T
	rig      *rig.Rig
	database string
	hosts    string // a file like /etc/hosts
	writer   rds.DBCluster
}

func begin(t *testing.T) *fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "howdah-drivers-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	f := &fleet{T: t, hosts: filepath.Join(dir, "hosts")}
	f.must(err)
	t.Cleanup(func() { testkit.Eventually(t, 30*time.Second, func() error { return os.RemoveAll(dir) }) })
	f.rig, err = rig.Start(t.Context(), rig.Options{Binary: binary, Dir: dir})
	f.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			f.showRefusals(dir)
		}
		f.must(f.rig.Close())
	})
	f.must(f.rig.CreateCluster(t.Context(), "shop", 3))
	f.writer, err = f.rig.Cluster(t.Context(), "shop")
	f.must(err)
	f.database = *f.writer.DbClusterResourceId
	f.name()
	f.settled()
	return f
}

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// showRefusals shows what agents said of tokens, and of what drivers ask.
func (f *fleet) showRefusals(dir string) {
	logs, _ := filepath.Glob(filepath.Join(dir, "agent*.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "token") || strings.Contains(line, "drivers") {
				f.Log(strings.TrimSpace(line))
			}
		}
	}
}

// name writes the names of all endpoints.
func (f *fleet) name() {
	f.Helper()
	text := "127.0.0.1 localhost\n" + *f.writer.Endpoint + " shop." + domain + "\n" + *f.writer.ReaderEndpoint + " shop-ro." + domain + "\n"
	for n := range 3 {
		name := fmt.Sprintf("shop-%d", n+1)
		testkit.Eventually(f.T, patience.For(time.Minute), func() error {
			config, err := f.rig.Config(f.Context(), name)
			if err == nil {
				text += config.Host + " " + name + "." + domain + "\n"
			}
			return err
		})
	}
	f.must(os.WriteFile(f.hosts, []byte(text), 0o644))
}

// settled waits until all three run, and each of them knows that.
func (f *fleet) settled() {
	f.Helper()
	testkit.Eventually(f.T, patience.For(time.Minute), func() error { return f.rig.InSync(f.Context(), f.database, 2) })
	for n := range 3 {
		testkit.Eventually(f.T, patience.For(time.Minute), func() error {
			all, err := f.ask(fmt.Sprintf("shop-%d", n+1), `SELECT string_agg(concat_ws(' ', server_id, session_id = 'MASTER_SESSION_ID'), ', ' ORDER BY server_id)
				FROM aurora_replica_status() WHERE last_update_timestamp > now() - interval '5 seconds'`)
			if err == nil && strings.Count(all, "shop-") != 3 {
				err = fmt.Errorf("shop-%d knows: %s", n+1, all)
			}
			return err
		})
	}
}

func (f *fleet) ask(instance, sql string) (text string, err error) {
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
func (f *fleet) environment(database, plugins string, more ...string) []string {
	return append([]string{
		"DB_HOST=shop." + domain, "DB_PORT=" + strconv.Itoa(int(*f.writer.Port)), "DB_NAME=" + database, "DB_USER=app", "DB_PASSWORD=" + rig.Password,
		"DB_PLUGINS=" + plugins, "DB_PATTERN=?." + domain, "DB_ASK=SELECT aurora_db_instance_identifier()",
	}, more...)
}

// answers are what a program that ends by itself says.
func (f *fleet) answers(name string, command, environment []string) (all []string) {
	f.Helper()
	p := start(f.T, name, f.hosts, command, environment)
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

// TestDrivers is the same for each language: the wrapper finds out what it is connected to, splits
// reading and writing, logs in with tokens, and follows the writer through failovers. The same
// program with the plain driver, at the writer endpoint, runs beside it.
func TestDrivers(t *testing.T) {
	f := begin(t)
	f.must(f.rig.Call(f.Context(), "ModifyDBCluster", &rds.ModifyDBClusterMessage{
		DBClusterIdentifier: new("shop"), EnableIAMDatabaseAuthentication: new(true), ApplyImmediately: new(true),
	}, &rds.ModifyDBClusterResult{}))
	f.exec("postgres", "CREATE ROLE jane LOGIN", "GRANT rds_iam TO jane")
	for _, l := range languages {
		if only := os.Getenv("HOWDAH_TEST_LANGUAGE"); only != "" && only != l.name {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			f := *f
			f.T = t
			command := l.command(t)
			f.knowsItself(l, command)
			f.splits(l, command)
			if l.iam != "" {
				f.token(l, command)
			}
			f.failovers(l, command)
		})
	}
}

func (f *fleet) knowsItself(l language, command []string) {
	f.Helper()
	instance, _ := f.leader()
	if got := f.answers(l.name, append(slices.Clone(command), "who"), f.environment("postgres", l.failover)); !slices.Equal(got, []string{instance}) {
		f.Errorf("connected to %q, and %s writes", got, instance)
	}
}

// splits: what only reads goes to a reader, and back.
func (f *fleet) splits(l language, command []string) {
	f.Helper()
	writer, _ := f.leader()
	got := f.answers(l.name+" splits", append(slices.Clone(command), "split"), f.environment("postgres", l.split))
	if len(got) != 3 || got[0] != writer || got[1] == writer || got[2] != writer {
		f.Errorf("writing, reading and writing lead to %q, and %s writes", got, writer)
	}
}

// token: the plugin makes a token of the environment's access key.
func (f *fleet) token(l language, command []string) {
	f.Helper()
	environment := f.environment("postgres", l.iam, "DB_USER=jane", "DB_PASSWORD=", "DB_IAM_HOST="+*f.writer.Endpoint, "DB_ASK=SELECT current_user",
		"AWS_ACCESS_KEY_ID=RIG", "AWS_SECRET_ACCESS_KEY=rig-secret", "AWS_REGION="+f.rig.Home.Region)
	if got := f.answers(l.name+" with a token", append(slices.Clone(command), "who"), environment); !slices.Equal(got, []string{"jane"}) {
		f.Errorf("a token logs in as %q", got)
	}
}

// failovers kills the primary again and again, under the program with the wrapper and with the plain
// driver. What they were told is done is there at the end.
func (f *fleet) failovers(l language, command []string) {
	f.Helper()
	times, err := strconv.Atoi(cmp.Or(os.Getenv("HOWDAH_TEST_FAILOVERS"), "10"))
	f.must(err)
	type arm struct {
		*program
		database string
		took     []time.Duration
	}
	var arms []*arm
	for _, plugins := range []string{l.failover, ""} {
		a := &arm{database: l.name + "_plain"}
		if plugins != "" {
			a.database = l.name + "_wrapper"
		}
		f.exec("postgres", "CREATE DATABASE "+a.database)
		f.exec(a.database, "CREATE TABLE ledger (id bigint PRIMARY KEY)")
		a.program = start(f.T, a.database, f.hosts, append(slices.Clone(command), "write"), f.environment(a.database, plugins))
		arms = append(arms, a)
	}
	for range times {
		for _, a := range arms {
			testkit.Eventually(f.T, patience.For(time.Minute), func() error { _, err := a.doneAfter(time.Now().Add(-time.Second)); return err })
		}
		f.settled()
		_, m := f.leader()
		f.must(m.KillPostgres())
		killed := time.Now()
		for _, a := range arms {
			// What was on its way when the primary died does not count.
			testkit.Eventually(f.T, patience.For(time.Minute), func() error {
				done, err := a.doneAfter(killed.Add(100 * time.Millisecond))
				if err == nil {
					a.took = append(a.took, done.Sub(killed))
					f.Logf("%s: failover %d, %.2f s", a.database, len(a.took), done.Sub(killed).Seconds())
				}
				return err
			})
		}
	}
	for _, a := range arms {
		a.finish(patience.For(30 * time.Second))
		f.Logf("%s: %s", a.database, figures(a.took))
		f.kept(a.database, a.program)
	}
}

func figures(took []time.Duration) string {
	sorted := slices.Sorted(slices.Values(took))
	var text []string
	for _, d := range sorted {
		text = append(text, fmt.Sprintf("%.2f", d.Seconds()))
	}
	return fmt.Sprintf("%d failovers, the next statement after %.2f s (median), %.2f s at most: %s",
		len(sorted), sorted[len(sorted)/2].Seconds(), sorted[len(sorted)-1].Seconds(), strings.Join(text, " "))
}

// kept: all that was done is there.
func (f *fleet) kept(database string, p *program) {
	f.Helper()
	config, err := f.rig.ClusterConfig(f.Context(), "shop")
	f.must(err)
	config.Database = database
	text, err := query(f.Context(), config, "SELECT coalesce(string_agg(id::text, ' '), '') FROM ledger")
	f.must(err)
	there := map[string]bool{}
	for _, id := range strings.Fields(text) {
		there[id] = true
	}
	done := p.all("done")
	for _, l := range done {
		if !there[l.more] {
			f.Errorf("%s was done at %s, and is lost", l.more, l.at.Format(time.TimeOnly))
		}
	}
	f.Logf("%s: %d rows, %d statements failed", database, len(done), len(p.all("failed")))
}
