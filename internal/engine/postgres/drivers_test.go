package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// Databases answer drivers once they were made to, by each release once. New ones are found, and
// those that are gone are forgotten.
func TestDatabasesAnswerDrivers(t *testing.T) {
	t.Parallel()
	modules, err := postgres.Modules(pgversion.Major())
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	const topology = `{"self":"m1","members":[{"name":"m1","id":"db-A","instance":"shop-1","endpoint":"127.9.2.1","port":5432,"address":"127.0.0.1","listen":1,"application":"db-1.m1"},` +
		`{"name":"m2","id":"db-B","instance":"shop-2","endpoint":"127.9.2.2","port":5432,"address":"127.0.0.1","listen":2,"application":"db-1.m2"}]}`
	s := pgtest.Start(t, pgtest.Options{Settings: "dynamic_library_path = '$libdir:" + modules + "'\nshared_preload_libraries = 'howdah'\nhowdah.cluster = 'aurora'\nhowdah.topology = '" + topology + "'\n"})
	for _, sql := range []string{
		"CREATE ROLE rdsadmin SUPERUSER LOGIN", "CREATE ROLE tenant LOGIN", "CREATE DATABASE app",
		"CREATE TABLE public.howdah_done (what text PRIMARY KEY, serial bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())",
	} {
		s.Exec(sql)
	}
	connect := func(database, user string) *pgx.Conn {
		t.Helper()
		config := s.Config()
		config.Database, config.User = database, user
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(t.Context()) })
		return conn
	}
	platform := connect("rdsadmin", "rdsadmin")
	now := time.Now().UTC()
	seen := member.Seen{At: now, Leader: "m1", Writer: "m1", WriterAt: now, Members: map[string]time.Time{"m2": now}}
	if err := postgres.SetSeen(t.Context(), platform, seen); !errors.Is(err, postgres.ErrNoTopology) {
		t.Errorf("told before it can be: %v", err)
	}
	lacking := func(want ...string) (oids []uint32) {
		t.Helper()
		all, err := postgres.DriverDatabases(t.Context(), platform, member.AuroraCluster)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range all {
			names, oids = append(names, d.Name), append(oids, d.OID)
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Fatalf("%q answer nothing, wants %q", names, want)
		}
		return oids
	}
	all := lacking("app", "postgres", "template1")
	for range 2 {
		for _, name := range []string{"app", "postgres", "template1"} {
			conn := connect(name, "rdsadmin")
			if err := postgres.SetUpDrivers(t.Context(), conn, member.AuroraCluster); err != nil {
				t.Fatal(err)
			}
			conn.Close(t.Context())
		}
	}
	if err := postgres.DriversSetUp(t.Context(), platform, member.AuroraCluster, all); err != nil {
		t.Fatal(err)
	}
	lacking()
	if err := postgres.SetSeen(t.Context(), platform, seen); err != nil {
		t.Fatal(err)
	}
	var self, status string
	const statusSQL = "SELECT aurora_db_instance_identifier(), (SELECT string_agg(concat_ws(' ', server_id, session_id), ', ' ORDER BY server_id) FROM pg_catalog.aurora_replica_status())"
	if err := connect("app", "tenant").QueryRow(t.Context(), statusSQL).Scan(&self, &status); err != nil || self != "shop-1" || status != "shop-1 MASTER_SESSION_ID, shop-2 db-B" {
		t.Errorf("%q: %q, %v", self, status, err)
	}
	s.Exec("CREATE DATABASE plain TEMPLATE template0")
	s.Exec("CREATE DATABASE closed ALLOW_CONNECTIONS false")
	lacking("plain")
	s.Exec("UPDATE public.howdah_done SET serial = 0 WHERE what LIKE 'drivers %'")
	s.Exec("DROP DATABASE plain")
	lacking("app", "postgres", "template1")
	if err := postgres.DriversSetUp(t.Context(), platform, member.AuroraCluster, nil); err != nil {
		t.Fatal(err)
	}
	if n := ask(t, s, "SELECT count(*)::text FROM public.howdah_done"); n != "3" {
		t.Errorf("%s records", n)
	}
}

// An instance that was made of a Multi-AZ DB cluster's data is no cluster any more for drivers. What
// users made of it, or made themselves under its name, is not taken away.
func TestAnInstanceThatWasACluster(t *testing.T) {
	t.Parallel()
	modules, err := postgres.Modules(pgversion.Major())
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	s := pgtest.Start(t, pgtest.Options{Settings: "dynamic_library_path = '$libdir:" + modules + "'\nshared_preload_libraries = 'howdah'\n"})
	for _, sql := range []string{
		"CREATE ROLE rdsadmin SUPERUSER LOGIN", "CREATE ROLE tenant LOGIN", "CREATE DATABASE app", "CREATE DATABASE viewed", "CREATE DATABASE own",
		"CREATE TABLE public.howdah_done (what text PRIMARY KEY, serial bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())",
	} {
		s.Exec(sql)
	}
	connect := func(database string) *pgx.Conn {
		t.Helper()
		config := s.Config()
		config.Database, config.User = database, "rdsadmin"
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	platform := connect("rdsadmin")
	former, err := postgres.FormerDrivers(t.Context(), platform)
	if must(err); len(former) != 0 {
		t.Errorf("of what was no cluster: %+v", former)
	}
	var done []uint32
	all, err := postgres.DriverDatabases(t.Context(), platform, member.MultiAZCluster)
	must(err)
	for _, d := range all {
		if d.Name != "own" {
			must(postgres.SetUpDrivers(t.Context(), connect(d.Name), member.MultiAZCluster))
			done = append(done, d.OID)
		}
	}
	must(postgres.DriversSetUp(t.Context(), platform, member.MultiAZCluster, done))
	for name, sql := range map[string]string{
		"viewed": "CREATE VIEW public.topology AS SELECT id FROM rds_tools.show_topology()",
		"own":    "CREATE SCHEMA rds_tools AUTHORIZATION tenant; CREATE FUNCTION rds_tools.dbi_resource_id() RETURNS text LANGUAGE sql AS 'SELECT 1::text'",
	} {
		_, err := connect(name).Exec(t.Context(), sql)
		must(err)
	}
	has := func(database string) (has bool) {
		t.Helper()
		must(connect(database).QueryRow(t.Context(), "SELECT to_regproc('rds_tools.dbi_resource_id') IS NOT NULL OR EXISTS (SELECT FROM pg_extension WHERE extname = 'rds_tools')").Scan(&has))
		return has
	}
	former, err = postgres.FormerDrivers(t.Context(), platform)
	if must(err); len(former) != len(all) {
		t.Errorf("%+v of %+v", former, all)
	}
	for range 2 {
		for _, d := range former {
			err := postgres.RemoveDrivers(t.Context(), connect(d.Name))
			if (err != nil) != (d.Name == "viewed") || has(d.Name) != (d.Name == "viewed" || d.Name == "own") {
				t.Errorf("%s: %v, has it: %v", d.Name, err, has(d.Name))
			}
		}
	}
	_, err = connect("viewed").Exec(t.Context(), "DROP VIEW public.topology")
	must(err)
	must(postgres.RemoveDrivers(t.Context(), connect("viewed")))
	must(postgres.DriversRemoved(t.Context(), platform))
	former, err = postgres.FormerDrivers(t.Context(), platform)
	if must(err); len(former) != 0 || has("viewed") {
		t.Errorf("after that: %+v", former)
	}
}
