package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit/pgtest"
)

// The source goes on with the slot of its subscription: the copy neither reads it nor drops it, in
// whatever database the subscription is, and whether it was enabled or not.
func TestACopyLeavesTheSlotsOfItsSource(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	s.Exec("CREATE TABLE public.howdah_done (what text PRIMARY KEY, serial bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())")
	s.Exec("INSERT INTO public.howdah_done VALUES ('master-user', 7), ('other', 5)")
	s.Exec("CREATE DATABASE far")
	config := s.Config()
	config.Database = "far"
	far, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close(t.Context())
	do := func(sql string) {
		t.Helper()
		if _, err := far.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, name := range []string{"goes_on", "rests"} {
		do("CREATE SUBSCRIPTION " + name + " CONNECTION 'host=/nowhere dbname=x' PUBLICATION p WITH (connect = false, slot_name = 'kept_" + name + "')")
	}
	do("ALTER SUBSCRIPTION goes_on ENABLE")
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for range 2 {
		if err := postgres.LeaveSource(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		const sql = "SELECT string_agg(subname || ' ' || subenabled || ' ' || coalesce(subslotname, 'none'), ', ' ORDER BY subname) FROM pg_subscription"
		if got := ask(t, s, sql); got != "goes_on false none, rests false none" {
			t.Errorf("subscriptions: %s", got)
		}
	}
	if got := ask(t, s, "SELECT string_agg(what || ' ' || serial, ', ' ORDER BY what) FROM public.howdah_done"); got != "master-user -1, other 5" {
		t.Errorf("what is done: %s", got)
	}
	// Its owner has it go on, with a slot of its own, or drops it, which asks no publisher.
	do("ALTER SUBSCRIPTION goes_on SET (slot_name = 'kept_goes_on')")
	do("ALTER SUBSCRIPTION goes_on ENABLE")
	do("DROP SUBSCRIPTION rests")
}
