package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// at is an acknowledgement of a writer, so many milliseconds after noon.
func at(writer, ms int) Entry {
	return Entry{Writer: writer, Number: int64(ms), At: noon.Add(time.Duration(ms) * time.Millisecond)}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	after := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	for name, c := range map[string]struct {
		all        []Entry
		since, now int
		began      int
		gap, worst int
	}{
		"nobody ever wrote":                   {},
		"steady":                              {all: []Entry{at(0, 0), at(0, 10), at(0, 20)}, now: 25, gap: 10, worst: 10},
		"a gap before the fault":              {all: []Entry{at(0, 0), at(0, 900), at(0, 910), at(0, 920)}, since: 905, now: 925, began: 900, gap: 10, worst: 10},
		"a gap that began before the fault":   {all: []Entry{at(0, 0), at(0, 500)}, since: 100, now: 510, gap: 500, worst: 500},
		"one writer waits while others go on": {all: []Entry{at(0, 0), at(1, 1), at(1, 40), at(1, 80), at(0, 100), at(1, 101)}, now: 102, began: 40, gap: 40, worst: 100},
		"nobody writes any more":              {all: []Entry{at(0, 0), at(0, 10)}, now: 700, began: 10, gap: 690, worst: 690},
	} {
		began, gap := Gap(c.all, after(c.since), after(c.now))
		worst := WorstGap(c.all, after(c.since), after(c.now))
		if gap != time.Duration(c.gap)*time.Millisecond || worst != time.Duration(c.worst)*time.Millisecond || gap > 0 && !began.Equal(after(c.began)) {
			t.Errorf("%s: %s from %s, worst %s", name, gap, began, worst)
		}
	}
}

func TestRatesAndSpans(t *testing.T) {
	t.Parallel()
	// The first and the last second are not whole, and would look like an outage.
	when, rates := Rates([]Entry{at(0, 900), at(1, 1100), at(0, 1900), at(1, 3500), at(0, 4100)})
	if fmt.Sprint(rates) != "[2 0 1]" || !when[2].Equal(noon.Add(3*time.Second)) {
		t.Errorf("%v at %v", rates, when)
	}
	for _, few := range [][]Entry{nil, {at(0, 100)}, {at(0, 100), at(1, 1900)}} {
		if when, rates := Rates(few); len(when)+len(rates) > 0 {
			t.Errorf("%v: %v, %v", few, when, rates)
		}
	}
	if s := Span([]Entry{at(0, 30), at(1, 10), at(0, 50)}); s != 40*time.Millisecond {
		t.Error(s)
	}
	if s := Span(nil); s != 0 {
		t.Error(s)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"57P01": fmt.Errorf("insert: %w", &pgconn.PgError{Code: "57P01"}), NoState: errors.New("connection refused"),
	} {
		if got := State(err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// Writers come back after their sessions were ended, and what is acknowledged and gone is found.
func TestALedger(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	l := &Ledger{Connect: func() *pgx.ConnConfig { return s.Config() }, Table: "acks", Writers: 2, Pause: time.Millisecond}
	for range 2 { // also where there is an old one
		if err := l.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	has := func(n int) func() error {
		return func() error {
			if got := len(l.Entries()); got < n {
				return fmt.Errorf("%d entries", got)
			}
			return nil
		}
	}
	testkit.Eventually(t, 10*time.Second, has(20))
	s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO acks%' AND pid <> pg_backend_pid()")
	testkit.Eventually(t, 10*time.Second, func() error {
		if counts, _ := l.Errors(); counts["57P01"] == 0 {
			return fmt.Errorf("errors %v", counts)
		}
		return nil
	})
	testkit.Eventually(t, 10*time.Second, has(len(l.Entries())+20))
	cancel()
	running.Wait()
	if missing, err := l.Missing(t.Context()); err != nil || len(missing) > 0 {
		t.Errorf("%v, %v", missing, err)
	}
	s.Exec("DELETE FROM acks WHERE writer = 1 AND number = 3")
	if missing, err := l.Missing(t.Context()); err != nil || len(missing) != 1 || missing[0].Writer != 1 || missing[0].Number != 3 {
		t.Errorf("%v, %v", missing, err)
	}
}
