package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit/pgtest"
)

// Subscriptions of a source are disabled once, with their slots as they were. Those that are this
// database's own are left alone, whatever happened before.
func TestSubscriptionsOfASource(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	subscribe := func(name string) {
		t.Helper()
		do("CREATE SUBSCRIPTION " + name + " CONNECTION 'host=/nowhere dbname=x' PUBLICATION p WITH (connect = false, slot_name = '" + name + "')")
		do("ALTER SUBSCRIPTION " + name + " ENABLE")
	}
	for _, step := range []struct {
		what, database string
		before         func()
		want           postgres.Heritage
		subscriptions  string
	}{
		{"data of an older release", "db-A", func() { subscribe("a"); subscribe("b") }, postgres.Heritage{Database: "db-A"}, "a true a, b true b"},
		{"a failover", "db-A", nil, postgres.Heritage{Database: "db-A"}, "a true a, b true b"},
		{"one rests, and a replica is promoted", "db-B", func() { do("ALTER SUBSCRIPTION b DISABLE") }, postgres.Heritage{Database: "db-B", Disabled: 1, From: "db-A"}, "a false a, b false b"},
		{"one goes on there", "db-B", func() { do("ALTER SUBSCRIPTION b ENABLE") }, postgres.Heritage{Database: "db-B", Disabled: 1, From: "db-A"}, "a false a, b true b"},
		{"all are gone, and a replica of that one is promoted", "db-C", func() {
			for _, name := range []string{"a", "b"} {
				do("ALTER SUBSCRIPTION " + name + " DISABLE")
				do("ALTER SUBSCRIPTION " + name + " SET (slot_name = NONE)")
				do("DROP SUBSCRIPTION " + name)
			}
		}, postgres.Heritage{Database: "db-C"}, ""},
		{"another comment", "db-C", func() { do("COMMENT ON DATABASE rdsadmin IS 'do not touch'"); subscribe("c") }, postgres.Heritage{Database: "db-C"}, "c true c"},
	} {
		if step.before != nil {
			step.before()
		}
		got, err := postgres.Inherit(t.Context(), conn, step.database)
		if err != nil || got != step.want {
			t.Errorf("%s: %+v, %v", step.what, got, err)
		}
		if read, err := postgres.ReadHeritage(t.Context(), conn); err != nil || read != step.want {
			t.Errorf("%s: read %+v, %v", step.what, read, err)
		}
		const sql = "SELECT coalesce(string_agg(subname || ' ' || subenabled || ' ' || subslotname, ', ' ORDER BY subname), '') FROM pg_subscription"
		if got := ask(t, s, sql); got != step.subscriptions {
			t.Errorf("%s: subscriptions %s", step.what, got)
		}
	}
}
