package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// slotServer is a primary with the module, and a session of the platform's.
func slotServer(t *testing.T, settings string) (*pgtest.Server, func(database, user string) *pgx.Conn) {
	t.Helper()
	modules, err := postgres.Modules(pgversion.Major())
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	s := pgtest.Start(t, pgtest.Options{Settings: "dynamic_library_path = '$libdir:" + modules +
		"'\nshared_preload_libraries = 'howdah'\nwal_level = logical\nmax_replication_slots = 30\nmax_wal_senders = 30\n" + settings})
	for _, sql := range []string{
		"CREATE ROLE rdsadmin SUPERUSER LOGIN", "CREATE ROLE rdsrepladmin LOGIN REPLICATION", "CREATE ROLE rds_replication", "CREATE ROLE mover LOGIN",
		"GRANT rds_replication TO mover", "CREATE DATABASE app",
		"CREATE TABLE public.howdah_done (what text PRIMARY KEY, serial bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())",
	} {
		s.Exec(sql)
	}
	return s, func(database, user string) *pgx.Conn {
		t.Helper()
		config := s.Config()
		config.Database, config.User = database, user
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
}

// Databases let users have slots once they were made to, by each release once. New ones are found.
func TestDatabasesHaveSlotsForUsers(t *testing.T) {
	t.Parallel()
	_, connect := slotServer(t, "howdah.logical_slots = on\n")
	platform, mover := connect("rdsadmin", "rdsadmin"), connect("app", "mover")
	create := func(name string) error {
		_, err := mover.Exec(t.Context(), "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", name)
		return err
	}
	lacking := func(want ...string) (oids []uint32) {
		t.Helper()
		all, err := postgres.SlotDatabases(t.Context(), platform)
		var names []string
		for _, d := range all {
			names, oids = append(names, d.Name), append(oids, d.OID)
		}
		if slices.Sort(names); err != nil || !slices.Equal(names, want) {
			t.Errorf("lacking: %v instead of %v, %v", names, want, err)
		}
		return oids
	}
	if err := create("early"); err == nil {
		t.Error("a slot is made by PostgreSQL's own function")
	}
	all := lacking("app", "postgres", "template1")
	for range 2 {
		if err := postgres.SetUpSlots(t.Context(), connect("app", "rdsadmin")); err != nil {
			t.Fatal(err)
		}
	}
	if err := create("mine"); err != nil {
		t.Error(err)
	}
	if err := postgres.SlotsSetUp(t.Context(), platform, all); err != nil {
		t.Fatal(err)
	}
	lacking()
	if _, err := platform.Exec(t.Context(), "CREATE DATABASE late TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	lacking("late")
	if facts, err := postgres.Observe(t.Context(), platform); err != nil || !slices.Equal(facts.Slots, []string{"mine"}) {
		t.Errorf("seen: %v, %v", facts.Slots, err)
	}
	// A primary's are not stale.
	if dropped, err := postgres.DropStaleSlots(t.Context(), platform); err != nil || len(dropped) != 0 {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if dropped, err := postgres.DropUserSlots(t.Context(), platform); err != nil || !slices.Equal(dropped, []string{"mine"}) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
}

// Slots wait for standbys by a setting that is written when it changes, where there is one.
func TestSlotsWaitForStandbys(t *testing.T) {
	t.Parallel()
	s, connect := slotServer(t, "")
	platform := connect("rdsadmin", "rdsadmin")
	s.Exec("SELECT pg_create_physical_replication_slot('db_1_m2')")
	for _, slots := range []string{"db_1_m2", "db_1_m2", ""} {
		if err := postgres.WaitForStandbys(t.Context(), platform, slots); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, patience, func() error { return waitsFor(platform, slots) })
	}
}

const patience = 10 * time.Second

func waitsFor(conn *pgx.Conn, slots string) error {
	var now *string
	err := conn.QueryRow(context.Background(), "SELECT current_setting('synchronized_standby_slots', true)").Scan(&now)
	if err == nil && now != nil && *now != slots {
		err = fmt.Errorf("it waits for %q", *now)
	}
	return err
}
