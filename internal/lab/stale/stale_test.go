package stale

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/address"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

func TestWhatAReadIs(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1000, 0)
	var h history
	for n := range 3 { // acknowledged after 0, 10 and 20 s
		if next := h.next(); next != int64(n+1) {
			t.Fatalf("%d is next after %d", next, n)
		}
		h.acknowledged(begin.Add(time.Duration(10*n) * time.Second))
	}
	read := begin.Add(21 * time.Second)
	for n, expected := range map[int64]Result{
		3: {Reads: 1},
		2: {Reads: 1, Stale: 1, Behind: 1, Oldest: time.Second},
		1: {Reads: 1, Stale: 1, Behind: 2, Oldest: 11 * time.Second},
		0: {Reads: 1, Stale: 1, Behind: 3, Oldest: 21 * time.Second},
	} {
		if r, err := h.judge(n, read); err != nil || r != expected {
			t.Errorf("%d: %+v, %v", n, r, err)
		}
	}
	for _, n := range []int64{-1, 4} {
		if _, err := h.judge(n, read); !errors.Is(err, ErrImpossible) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	var r Result
	if r.Percent() != 0 {
		t.Errorf("nothing was read: %v", r.Percent())
	}
	r.add(Result{Reads: 3, Stale: 1, Behind: 5, Oldest: time.Second})
	r.add(Result{Reads: 1, Behind: 0})
	if r != (Result{Reads: 4, Stale: 1, Behind: 5, Oldest: time.Second}) || r.Percent() != 25 {
		t.Errorf("%+v", r)
	}
	f := r.Figures()
	if len(f) != len(Columns) || f["stale_percent"] != 25 || f["stale_age_ms"] != 1000 || f["stale_writes"] != 5 || f["checked_reads"] != 4 || f["stale_reads"] != 1 {
		t.Errorf("%v", f)
	}
}

// at is how sessions reach a server of a test.
func at(t *testing.T, s *pgtest.Server) address.Server {
	t.Helper()
	server, err := address.Parse("postgresql://"+s.User+"@"+s.Addr+"/"+s.Database+"?sslmode=disable", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// A standby that replays nothing gives the old value for ever, and the primary never does.
func TestOldValues(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Follow("late", pgtest.Options{})
	if err := Make(t.Context(), at(t, primary), 2); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		conn, err := pgx.ConnectConfig(t.Context(), standby.Config())
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		_, err = conn.Exec(t.Context(), "SELECT n FROM "+Table)
		return err
	})
	conn, err := pgx.ConnectConfig(t.Context(), standby.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		var state string
		if err := conn.QueryRow(t.Context(), "SELECT pg_get_wal_replay_pause_state()").Scan(&state); err != nil || state != "paused" {
			return fmt.Errorf("replay is %s: %w", state, err)
		}
		return nil
	})
	for _, one := range []struct {
		read  *pgtest.Server
		stale bool
	}{{primary, false}, {standby, true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		r, err := Run(ctx, Options{Write: at(t, primary), Read: at(t, one.read), Pairs: 2, Pause: time.Millisecond})
		cancel()
		if err != nil || r.Reads == 0 || (r.Stale > 0) != one.stale || one.stale && (r.Stale < r.Reads-2 || r.Oldest <= 0 || r.Behind < 1) {
			t.Errorf("stale should be %t: %+v, %v", one.stale, r, err)
		}
		if err := Make(t.Context(), at(t, primary), 2); err != nil {
			t.Fatal(err)
		}
	}
}
