package warmth

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/probe"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

func TestWhetherTheLibraryIsLoaded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "ccm": true, "howdah,pg_stat_statements": false, "howdah, ccm": true, `howdah,"ccm",pg_prewarm`: true, "ccmx": false, "occm": false,
	} {
		if loaded(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestWhatARoundTells(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hot, missing int64
		percent      float64
	}{{0, 0, 100}, {1000, 1000, 0}, {1000, 250, 75}, {1000, 0, 100}} {
		k := New(nil, "db-1.m2", nil, nil)
		(&round{keeper: k, hot: tt.hot, missing: tt.missing}).tell("why")
		want := member.Cache{State: member.CacheOutside, Why: "why", Percent: tt.percent, Known: true}
		if got := k.Last(); got == nil || *got != want {
			t.Errorf("%d of %d are missing: %+v", tt.missing, tt.hot, got)
		}
	}
}

// Reading from outside gives way: to what the standby needs itself, to replay, to a promotion, and to
// whoever turns it off.
func TestReadingFromOutsideGivesWay(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{Settings: "wal_level = replica\nautovacuum = off\n"})
	standby := primary.Follow("standby", pgtest.Options{})
	connect := func(s *pgtest.Server) *pgx.Conn {
		t.Helper()
		conn, err := pgx.ConnectConfig(t.Context(), s.Config())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	target := member.Assignment{ID: "db-1.m2", Parameters: map[string]string{postgres.CacheSetting: "on"}}
	k := New(nil, target.ID, probe.New(nil, target.ID), nil)
	k.conn = connect(standby)
	r := &round{keeper: k, room: 100}
	expect := func(what string, n int64, want error) {
		t.Helper()
		if err := r.mayRead(t.Context(), n); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}

	expect("before it is on", 1, errPromoted)
	k.probe.Aim(target)
	expect("all is well", 100, nil)
	expect("the cache is full", 101, errNoRoom)

	said := connect(standby)
	if _, err := said.Exec(t.Context(), "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	primary.Exec("CREATE TABLE much AS SELECT n, repeat('x', 1000) AS x FROM generate_series(1, 100000) n")
	testkit.Eventually(t, time.Minute, func() error {
		if err := r.mayRead(t.Context(), 1); !errors.Is(err, errBehind) {
			return fmt.Errorf("replay is far behind: %w", err)
		}
		return nil
	})
	if _, err := said.Exec(t.Context(), "SELECT pg_wal_replay_resume()"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, func() error { return r.mayRead(t.Context(), 1) })

	off := target
	off.Parameters = map[string]string{postgres.CacheSetting: "off"}
	k.probe.Aim(off)
	expect("it was turned off", 1, errPromoted)
	k.probe.Aim(target)
	k.conn = connect(primary)
	expect("it was promoted", 1, errPromoted)
	r.leads, r.looked = true, time.Now()
	expect("a primary that was started again", 1, nil)
	k.conn = connect(standby)
	expect("and then followed another one", 1, errPromoted)
}
