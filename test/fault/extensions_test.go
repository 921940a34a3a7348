package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/engine/postgres"
	"howdah/internal/model/extension"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgversion"
	"howdah/internal/testkit/rig"
)

// trial uses an extension: statements that prepare it, and a query with the text that it must
// return.
type trial struct{ prepare, query, want string }

// trials has one for each extension that packages bring. pg_cron, which works in one database only,
// has a story of its own.
var trials = map[string]trial{
	"hll":              {"", `SELECT (#hll_add(hll_empty(), hll_hash_integer(1)))::int::text`, "1"},
	"hypopg":           {`CREATE TABLE try_hypopg (a int)`, `SELECT count(*)::text FROM hypopg_create_index('CREATE INDEX ON try_hypopg (a)')`, "1"},
	"ip4r":             {"", `SELECT ('10.0.0.0/8'::ip4r >>= '10.1.2.3'::ip4r)::text`, "true"},
	"mysql_fdw":        {`CREATE SERVER try_mysql FOREIGN DATA WRAPPER mysql_fdw OPTIONS (host '127.0.0.1', port '1')`, `SELECT count(*)::text FROM pg_foreign_server WHERE srvname = 'try_mysql'`, "1"},
	"orafce":           {"", `SELECT oracle.add_months('2024-01-31'::date, 1)::text`, "2024-02-29"},
	"pg_partman":       {`CREATE TABLE public.try_part (id int, at timestamptz NOT NULL) PARTITION BY RANGE (at)`, `SELECT count(*)::text FROM part_config`, "0"},
	"pg_qualstats":     {"", `SELECT (count(*) >= 0)::text FROM pg_qualstats`, "true"},
	"pg_similarity":    {"", `SELECT (lev('abc', 'abd') > 0)::text`, "true"},
	"pg_wait_sampling": {"", `SELECT (count(*) >= 0)::text FROM pg_wait_sampling_profile`, "true"},
	"pgaudit":          {`SET pgaudit.log = 'ddl'; CREATE TABLE try_audit (a int); DROP TABLE try_audit`, `SELECT count(*)::text FROM pg_event_trigger WHERE evtname LIKE 'pgaudit%'`, "2"},
	"pgrouting":        {"", `SELECT sum(cost)::text FROM pgr_dijkstra('SELECT 1 AS id, 1 AS source, 2 AS target, 1.0::float8 AS cost', 1, 2)`, "1"},
	"pgtap":            {"", `SELECT (pgtap_version() > 1)::text`, "true"},
	"plpgsql_check": {
		`CREATE FUNCTION try_check() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN nothing FROM nowhere; END $$`,
		`SELECT (count(*) > 0)::text FROM plpgsql_check_function('try_check()')`, "true",
	},
	"postgis":        {`CREATE TABLE try_gis (g geometry(Point, 4326)); CREATE INDEX ON try_gis USING gist (g); INSERT INTO try_gis VALUES (ST_SetSRID(ST_Point(1, 2), 4326))`, `SELECT ST_AsText(ST_Transform(g, 4326)) FROM try_gis`, "POINT(1 2)"},
	"postgis_raster": {"", `SELECT ST_Width(ST_MakeEmptyRaster(3, 2, 0, 0, 1))::text`, "3"},
	"postgis_topology": {
		`SELECT topology.CreateTopology('try_topo', 4326); SELECT topology.ST_AddIsoNode('try_topo', NULL, 'SRID=4326;POINT(1 2)')`,
		`SELECT (topology.TopologySummary('try_topo') LIKE '%1 nodes%')::text`, "true",
	},
	"prefix":  {"", `SELECT ('123'::prefix_range @> '12345')::text`, "true"},
	"rum":     {`CREATE TABLE try_rum (t tsvector); CREATE INDEX ON try_rum USING rum (t); INSERT INTO try_rum VALUES ('a b')`, `SELECT count(*)::text FROM try_rum WHERE t @@ 'b'`, "1"},
	"semver":  {"", `SELECT ('1.2.3'::semver < '1.10.0'::semver)::text`, "true"},
	"tds_fdw": {`CREATE SERVER try_tds FOREIGN DATA WRAPPER tds_fdw OPTIONS (servername '127.0.0.1', port '1', database 'x')`, `SELECT count(*)::text FROM pg_foreign_server WHERE srvname = 'try_tds'`, "1"},
	"vector":  {`CREATE TABLE try_vector (v vector(2)); CREATE INDEX ON try_vector USING hnsw (v vector_l2_ops); INSERT INTO try_vector VALUES ('[1,2]')`, `SELECT (v <-> '[1,2]')::text FROM try_vector`, "0"},
}

// packaged returns the extensions of packages that are installed here, but for pg_cron, in an order
// in which each comes after what it requires.
func packaged(t *testing.T) (names, libraries []string) {
	t.Helper()
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		t.Fatal(err)
	}
	has, err := install.Extensions()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range extension.All() {
		if _, installed := has[e.Name]; !installed || e.Package == "" {
			continue
		}
		if e.Library != "" {
			libraries = append(libraries, e.Library)
		}
		if e.Name != "pg_cron" {
			names = append(names, e.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(first(a), first(b)) })
	return names, libraries
}

// first sorts PostGIS before all that requires it.
func first(name string) string {
	if name == "postgis" {
		return ""
	}
	return name
}

// The master user creates every extension of a package that is installed here, uses it before and
// after a failover, dumps and restores it, and drops it. make test-extensions installs all of them;
// make test has a few.
func TestExtensionsOfPackages(t *testing.T) {
	names, libraries := packaged(t)
	if len(names) == 0 {
		t.Fatal("no extension of a package is installed: run scripts/install --test")
	}
	s := begin(t, nil)
	id := s.given("orders", true)
	s.preloads("orders", libraries)
	s.must(s.exec("orders", "CREATE DATABASE shop"), "create a database")
	s.must(s.exec("orders", "CREATE DATABASE again"), "create a database")
	shop := s.in("shop")
	for _, name := range names {
		try, ok := trials[name]
		if !ok {
			t.Errorf("nobody tries %s", name)
			continue
		}
		if err := shop.exec("CREATE EXTENSION " + name); err != nil {
			t.Errorf("create %s: %v", name, err)
			continue
		}
		if err := shop.exec(try.prepare); err != nil {
			t.Errorf("prepare %s: %v", name, err)
		}
		if err := shop.exec("ALTER EXTENSION " + name + " UPDATE"); err != nil {
			t.Errorf("update %s: %v", name, err)
		}
	}
	if slices.Contains(libraries, "pg_cron") {
		s.must(s.exec("orders", "CREATE EXTENSION pg_cron"), "create pg_cron")
		s.must(s.exec("orders", "CREATE TABLE ticks (at timestamptz DEFAULT clock_timestamp(), server int DEFAULT pg_backend_pid(), who text DEFAULT current_user)"), "create a table")
		s.must(s.exec("orders", "SELECT cron.schedule('tick', '* * * * *', 'INSERT INTO ticks DEFAULT VALUES')"), "schedule a job")
	}
	shop.trials(t, names, "at first")

	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	before := s.leader(id)
	s.asks(60*time.Second, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new("orders"), ForceFailover: new(true)}, &rds.RebootDBInstanceResult{})
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", time.Minute), "available after a failover")
	failedOver := time.Now()
	if after := s.leader(id); after.Host == before.Host {
		t.Errorf("%s still leads", after.Host)
	}
	shop.trials(t, names, "after a failover")
	shop.restoreInto(t, "again")
	again := s.in("again")
	again.trials(t, names, "restored from a dump")
	for _, name := range slices.Backward(names) {
		if err := again.exec("DROP EXTENSION " + name + " CASCADE"); err != nil {
			t.Errorf("drop %s: %v", name, err)
		}
	}
	if slices.Contains(libraries, "pg_cron") {
		s.eventually(30*time.Second, func() error {
			got, err := s.query("orders", "SELECT count(*)::text FROM pg_stat_activity WHERE backend_type LIKE 'pg_cron%'")
			if err == nil && got == "0" {
				err = errors.New("pg_cron does not run on the new primary")
			}
			return err
		})
		if os.Getenv(allVariable) != "" { // a job waits for the next minute
			s.ticksAfter(failedOver)
		}
		s.must(s.exec("orders", "SELECT cron.unschedule('tick')"), "end the job")
		s.must(s.exec("orders", "COMMENT ON EXTENSION pg_cron IS 'mine'"), "comment on pg_cron")
		s.must(s.exec("orders", "DROP EXTENSION pg_cron"), "drop pg_cron")
	}
}

// allVariable is set by make test-extensions.
const allVariable = "HOWDAH_TEST_EXTENSIONS"

// ticksAfter waits for a run of the job on the new primary, as who scheduled it. Another name in
// the table would be somebody else's rights.
func (s *story) ticksAfter(moment time.Time) {
	s.Helper()
	s.eventually(90*time.Second, func() error {
		got, err := s.query("orders", fmt.Sprintf("SELECT count(*) FILTER (WHERE who = 'app') || ' ' || count(*) FILTER (WHERE who <> 'app') FROM ticks WHERE at > to_timestamp(%d)", moment.Unix()))
		if err != nil {
			return err
		}
		own, others, _ := strings.Cut(got, " ")
		if n, _ := strconv.Atoi(own); n < 1 || others != "0" {
			return fmt.Errorf("after the failover the job ran %s times, and %s times as somebody else", own, others)
		}
		return nil
	})
}

// preloads has an instance load libraries, by a parameter group of its own.
func (s *story) preloads(name string, libraries []string) {
	s.Helper()
	s.ownParameters(name, "libraries")
	s.asks(60*time.Second, "ModifyDBParameterGroup", &rds.ModifyDBParameterGroupMessage{DBParameterGroupName: new("libraries"), Parameters: []rds.Parameter{{
		ParameterName: new("shared_preload_libraries"), ParameterValue: new(strings.Join(libraries, ",")), ApplyMethod: new("pending-reboot"),
	}}}, &rds.DBParameterGroupNameMessage{})
	s.asks(60*time.Second, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &name}, &rds.RebootDBInstanceResult{})
	s.must(s.rig.WaitStatus(s.Context(), name, "available", time.Minute), "available with its libraries")
	s.eventually(60*time.Second, func() error {
		loaded, err := s.query(name, "SHOW shared_preload_libraries")
		if err == nil && !strings.Contains(loaded, strings.Join(libraries, ",")) {
			err = fmt.Errorf("%s loads %s", name, loaded)
		}
		return err
	})
}

// base is a database of the instance orders, as the master user sees it.
type base struct {
	*story
	name string
}

func (s *story) in(name string) base { return base{s, name} }

func (b base) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := b.rig.Config(ctx, "orders")
	if err != nil {
		return nil, err
	}
	config.Database = b.name
	return pgx.ConnectConfig(ctx, config)
}

func (b base) exec(sql string) error {
	ctx, cancel := context.WithTimeout(b.Context(), patience.For(60*time.Second))
	defer cancel()
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// trials uses each extension.
func (b base) trials(t *testing.T, names []string, when string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience.For(60*time.Second))
	defer cancel()
	conn, err := b.connect(ctx)
	b.must(err, "connect")
	defer conn.Close(ctx)
	for _, name := range names {
		try := trials[name]
		var got string
		if err := conn.QueryRow(ctx, try.query).Scan(&got); err != nil || got != try.want {
			t.Errorf("%s, %s: %q, %v, want %q", name, when, got, err, try.want)
		}
	}
}

// restoreInto dumps the database as the master user, and restores it into another one. No statement
// of the restore may fail.
func (b base) restoreInto(t *testing.T, other string) {
	t.Helper()
	install, err := postgres.Find(pgversion.Major())
	b.must(err, "find PostgreSQL")
	config, err := b.rig.Config(b.Context(), "orders")
	b.must(err, "find the endpoint")
	dir := t.TempDir()
	passwords := filepath.Join(dir, "pgpass")
	b.must(os.WriteFile(passwords, []byte("*:*:*:*:"+rig.Password+"\n"), 0o600), "write the password")
	run := func(program string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(b.Context(), patience.For(2*time.Minute))
		defer cancel()
		cmd := exec.CommandContext(ctx, install.Program(program), args...)
		cmd.Env = append(os.Environ(), "PGHOST="+config.Host, "PGPORT="+strconv.Itoa(int(config.Port)), "PGUSER=app", "PGSSLMODE=verify-full",
			"PGSSLROOTCERT="+b.rig.Home.CAFile(), "PGPASSFILE="+passwords)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
	// What the platform granted on functions of PostgreSQL's own cannot be granted by a master
	// user, who has it already.
	run("pg_dump", "-Fc", "--no-privileges", "-f", filepath.Join(dir, "dump"), b.name)
	run("pg_restore", "--exit-on-error", "--no-owner", "-d", other, filepath.Join(dir, "dump"))
}
