package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/page"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgtest"
)

// comingJourney moves a database from a plain PostgreSQL into a Multi-AZ instance, as the page of the
// guide says, while writers write, and fails the instance over in the middle.
func comingJourney(t *testing.T, env map[string]string) {
	m := newMove(t, env)
	text, err := os.ReadFile("../../docs/guide/coming-from-postgresql.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := page.Blocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	// What happens once all blocks below a heading have run.
	after := map[string]func(){
		"Subscribe":                        m.failover,
		"Wait until all tables are copied": m.follows,
		"Cut over":                         m.turn,
	}
	shell := page.Shell{Dir: m.dir, Env: m.environ(), Within: 90 * time.Second}
	for n, b := range blocks {
		began := time.Now()
		shell.Run(t, b)
		t.Logf("%5.1f s for line %d: %s", time.Since(began).Seconds(), b.Line, b.Heading)
		last := n+1 == len(blocks) || blocks[n+1].Heading != b.Heading
		if then := after[b.Heading]; last && then != nil {
			delete(after, b.Heading)
			then()
		}
	}
	if len(after) > 0 {
		t.Errorf("the page has no commands below %q", slices.Collect(maps.Keys(after)))
	}
	m.nothingLost()
	m.dumps(shell)
	goDelete(t, m.client, coming)
}

// move is a database that moves.
type move struct {
	*testing.T
	client *rds.Client
	dir    string
	env    map[string]string
	source *pgtest.Server
	to     *pgx.ConnConfig // the new database, as the application's user
	load   *ack.Load
	stop   func()
}

const (
	coming     = "coming"
	shopPass   = "of-the-Shop-1" // of the application's user, in the old database and so in the new one
	oldPass    = "of-Postgres-1"
	everybodys = "0123456789" // in each customer's name, for an index to find
)

func newMove(t *testing.T, env map[string]string) *move {
	m := &move{T: t, client: goClient(t, env), dir: t.TempDir(), env: maps.Clone(env)}
	m.old()
	m.create()
	m.names()
	m.write()
	return m
}

// old starts the old server, and fills its database.
func (m *move) old() {
	m.source = pgtest.Start(m.T, pgtest.Options{Settings: "wal_level = logical\n"})
	hba := "local all all trust\nhost all rdsmon 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(m.source.DataDir(), "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		m.Fatal(err)
	}
	m.source.Exec("SELECT pg_reload_conf()")
	m.source.Exec("CREATE ROLE postgres SUPERUSER LOGIN PASSWORD '" + oldPass + "'")
	m.source.Exec("CREATE ROLE shopkeeper LOGIN PASSWORD '" + shopPass + "'")
	m.source.Exec("CREATE ROLE reader; GRANT reader TO shopkeeper; ALTER ROLE shopkeeper SET work_mem = '8MB'")
	m.source.Exec("CREATE DATABASE shop OWNER shopkeeper")
	m.source.Database = "shop"
	m.source.Exec(`CREATE EXTENSION pg_trgm;
		SET ROLE shopkeeper;
		CREATE SCHEMA sales;
		CREATE TYPE sales.state AS ENUM ('open', 'paid');
		CREATE TABLE sales.customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL);
		CREATE INDEX ON sales.customers USING gin (name public.gin_trgm_ops);
		CREATE TABLE sales.orders (id bigserial PRIMARY KEY, customer bigint NOT NULL REFERENCES sales.customers, state sales.state NOT NULL DEFAULT 'open',
			at timestamptz NOT NULL DEFAULT now()) PARTITION BY HASH (id);
		CREATE TABLE sales.orders_0 PARTITION OF sales.orders FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE sales.orders_1 PARTITION OF sales.orders FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		CREATE VIEW sales.open AS SELECT * FROM sales.orders WHERE state = 'open';
		CREATE FUNCTION sales.kept() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name := trim(NEW.name); RETURN NEW; END';
		CREATE TRIGGER kept BEFORE INSERT ON sales.customers FOR EACH ROW EXECUTE FUNCTION sales.kept();
		CREATE SEQUENCE sales.unused;
		GRANT USAGE ON SCHEMA sales TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA sales TO reader;
		INSERT INTO sales.customers (name) SELECT i || '` + everybodys + `' FROM generate_series(1, 20000) i;
		INSERT INTO sales.orders (customer) SELECT 1 + i % 20000 FROM generate_series(1, 50000) i`)
}

// create makes the instance into which the database moves.
func (m *move) create() {
	m.Helper()
	_, err := m.client.CreateDBInstance(m.Context(), &rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String(coming), DBInstanceClass: aws.String("db.t3.micro"), Engine: aws.String("postgres"), MultiAZ: aws.Bool(true),
		AllocatedStorage: aws.Int32(20), MasterUsername: aws.String("app"), MasterUserPassword: aws.String(goPassword), DBName: aws.String("shop"), BackupRetentionPeriod: aws.Int32(0),
	})
	if err != nil {
		m.Fatal(err)
	}
	m.available()
	m.to = m.config("shopkeeper", shopPass, "shop")
}

func (m *move) available() {
	m.Helper()
	waiter := rds.NewDBInstanceAvailableWaiter(m.client, func(o *rds.DBInstanceAvailableWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Second, time.Second
	})
	if err := waiter.Wait(m.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(coming)}, patience.For(time.Minute)); err != nil {
		m.Fatal(err)
	}
}

// address returns where the instance is reached.
func (m *move) address() string {
	m.Helper()
	shown, err := m.client.DescribeDBInstances(m.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(coming)})
	if err != nil {
		m.Fatal(err)
	}
	return *shown.DBInstances[0].Endpoint.Address
}

// config is how a user of the new database connects.
func (m *move) config(user, password, database string) *pgx.ConnConfig {
	m.Helper()
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s user=%s password=%s dbname=%s sslmode=verify-full sslrootcert=%s", m.address(), user, password, database, m.env["AWS_CA_BUNDLE"]))
	if err != nil {
		m.Fatal(err)
	}
	return config
}

// names writes the files with the servers' names and passwords that the page speaks of.
func (m *move) names() {
	m.Helper()
	old := m.source.Config()
	services := fmt.Sprintf("[old]\nhost=%s\nport=%d\ndbname=shop\nuser=postgres\n\n[new]\nhost=%s\ndbname=shop\nuser=app\nsslmode=verify-full\nsslrootcert=%s\n", old.Host, old.Port, m.address(), m.env["AWS_CA_BUNDLE"])
	passwords := fmt.Sprintf("*:*:*:postgres:%s\n*:*:*:app:%s\n*:*:*:shopkeeper:%s\n", oldPass, goPassword, shopPass)
	for name, text := range map[string]string{"services": services, "passwords": passwords} {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
			m.Fatal(err)
		}
	}
	m.env["PGSERVICEFILE"], m.env["PGPASSFILE"] = filepath.Join(m.dir, "services"), filepath.Join(m.dir, "passwords")
	m.env["OLD_HOST"], m.env["OLD_PORT"] = old.Host, fmt.Sprint(old.Port)
	// These go before what is in a service.
	delete(m.env, "PGSSLROOTCERT")
}

func (m *move) environ() []string { return environ(m.env) }

// write begins to write to the old database, as the application does.
func (m *move) write() {
	m.Helper()
	config := m.source.Config()
	config.User, config.Password, config.Database = "shopkeeper", shopPass, "shop"
	m.load = &ack.Load{Config: config, Table: "sales.acks", Writers: 3, Pause: 3 * time.Millisecond}
	if err := m.load.Prepare(m.Context()); err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.Context()))
	var done sync.WaitGroup
	done.Go(func() { m.load.Run(ctx) })
	m.stop = func() { cancel(); done.Wait() }
	m.Cleanup(m.stop)
}

// failover makes the standby of the new database its primary, while tables are copied and rows come.
func (m *move) failover() {
	m.Helper()
	testkit.Eventually(m, 30*time.Second, func() error {
		_, err := m.client.RebootDBInstance(m.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(coming), ForceFailover: aws.Bool(true)})
		return err
	})
	m.available()
}

// follows makes sure that rows come after the tables have been copied, and lets some more come.
func (m *move) follows() {
	m.Helper()
	app := m.config("app", goPassword, "shop")
	acks := m.load.Acks()
	m.source.Exec("UPDATE sales.orders SET state = 'paid' WHERE id % 10 = 0; DELETE FROM sales.orders WHERE id % 100 = 1; INSERT INTO sales.customers (name) VALUES (' late ')")
	testkit.Eventually(m, 60*time.Second, func() error {
		missing, err := ack.Missing(m.Context(), app, m.load.Table, acks)
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("%d rows have not come, the first %+v", len(missing), missing[0])
		}
		return err
	})
}

// turn lets the writers go on in the new database, and says how long they stood still.
func (m *move) turn() {
	m.Helper()
	before := m.load.Acks()
	m.load.Turn(m.to)
	testkit.Eventually(m, 20*time.Second, func() error {
		if len(m.load.Acks()) < len(before)+10 {
			return fmt.Errorf("nobody writes: %q", m.load.Errors())
		}
		return nil
	})
	acks := m.load.Acks()
	m.Logf("writers stood still for %s, and wrote %d rows before that", acks[len(before)].At.Sub(before[len(before)-1].At), len(before))
}

// nothingLost compares the databases, and looks for every row that a writer was told of.
func (m *move) nothingLost() {
	m.Helper()
	m.stop()
	acks := m.load.Acks()
	missing, err := ack.Missing(m.Context(), m.to, m.load.Table, acks)
	if err != nil || len(missing) > 0 {
		m.Errorf("%d of %d rows are lost: %v; %v", len(missing), len(acks), missing[:min(len(missing), 3)], err)
	}
	for _, table := range []string{"sales.customers", "sales.orders"} {
		sum := "SELECT count(*) || ' ' || md5(string_agg(t::text, E'\n' ORDER BY id)) FROM " + table + " t"
		if was, is := m.ask(m.source.Config(), sum), m.ask(m.to, sum); was != is {
			m.Errorf("%s was %s, and is %s", table, was, is)
		}
	}
	// Sequences go on where they were, and what was made with the tables works.
	if n := m.ask(m.to, "INSERT INTO sales.orders (customer) VALUES (1) RETURNING id::text"); n != "50001" {
		m.Errorf("the next order is %s", n)
	}
	if n := m.ask(m.to, "INSERT INTO sales.customers (name) VALUES (' new ') RETURNING id || name"); n != "20002new" {
		m.Errorf("the next customer is %q", n)
	}
	if n := m.ask(m.to, "SELECT nextval('sales.unused')::text"); n != "1" {
		m.Errorf("a sequence that nobody had used says %s", n)
	}
	if n := m.ask(m.source.Config(), "SELECT count(*)::text FROM pg_replication_slots"); n != "0" {
		m.Errorf("%s slots are left in the old database", n)
	}
}

// ask runs a query that answers with one text.
func (m *move) ask(config *pgx.ConnConfig, sql string) string {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), patience.For(20*time.Second))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		m.Fatal(err)
	}
	defer conn.Close(ctx)
	var text string
	if err := conn.QueryRow(ctx, sql).Scan(&text); err != nil {
		m.Fatalf("%s: %v", sql, err)
	}
	return text
}

// dumps takes the database out of Howdah again and into another one, with the programs that people do it
// with, as the master user.
func (m *move) dumps(shell page.Shell) {
	m.Helper()
	shell.Run(m, page.Block{Heading: "dumps", Commands: `
pg_dumpall -d service=new --roles-only --no-role-passwords >roles-of-new.sql
grep -q 'CREATE ROLE shopkeeper' roles-of-new.sql
pg_dumpall -d service=new --no-role-passwords --exclude-database=rdsadmin >all-of-new.sql
grep -q 'COPY sales.orders_0 ' all-of-new.sql
pg_dump -d service=new -Fd -j 2 -f shop.dump
psql service=new -q -v ON_ERROR_STOP=1 -c 'CREATE DATABASE again OWNER shopkeeper'
pg_restore -d 'service=new dbname=again' --exit-on-error -j 2 shop.dump
psql service=new -q -v ON_ERROR_STOP=1 -c "\copy (SELECT * FROM sales.orders ORDER BY id) TO 'orders.csv' CSV"
psql 'service=new dbname=again' -q -v ON_ERROR_STOP=1 <<'END'
TRUNCATE sales.orders;
\copy sales.orders FROM 'orders.csv' CSV
\copy (SELECT * FROM sales.orders ORDER BY id) TO 'again.csv' CSV
END
`})
	was, errWas := os.ReadFile(filepath.Join(m.dir, "orders.csv"))
	is, errIs := os.ReadFile(filepath.Join(m.dir, "again.csv"))
	if errWas != nil || errIs != nil || !bytes.Equal(was, is) || len(was) < 1<<20 {
		m.Errorf("a copy of %d bytes came back with %d: %v, %v", len(was), len(is), errWas, errIs)
	}
	if all, err := os.ReadFile(filepath.Join(m.dir, "all-of-new.sql")); err != nil || bytes.Contains(all, []byte("SCRAM-SHA-256")) {
		m.Errorf("a dump without passwords has some, or is not there: %v", err)
	}
}
