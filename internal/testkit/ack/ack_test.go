package ack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// begin makes a load run. end stops it.
func begin(t *testing.T, l *Load) (end func()) {
	t.Helper()
	if err := l.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { l.Run(ctx) })
	end = func() { cancel(); done.Wait() }
	t.Cleanup(end)
	return end
}

// enough checks that each writer has this many acknowledgements after a moment. One writer alone
// may have hundreds before the others have a session.
func enough(l *Load, n int, since time.Time) func() error {
	return func() error {
		of := map[int]int{}
		for _, a := range l.Acks() {
			if a.At.After(since) {
				of[a.Writer]++
			}
		}
		for i := range l.Writers {
			if got := of[l.First+i]; got < n {
				return fmt.Errorf("writer %d has %d acknowledgements", l.First+i, got)
			}
		}
		return nil
	}
}

func missing(t *testing.T, l *Load) []Ack {
	t.Helper()
	lost, err := Missing(t.Context(), l.Config, l.Table, l.Acks())
	if err != nil {
		t.Fatal(err)
	}
	return lost
}

// Every acknowledged row is found again, and one that vanishes is named.
func TestALostRowIsFound(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	var mu sync.Mutex
	told := 0
	l := &Load{Config: server.Config(), Table: "acked", Writers: 3, First: 10, OnAck: func(Ack) { mu.Lock(); told++; mu.Unlock() }}
	end := begin(t, l)
	testkit.Eventually(t, 20*time.Second, enough(l, 100, time.Time{}))
	end()
	if lost := missing(t, l); len(lost) != 0 {
		t.Fatalf("nothing was lost, but these are missing: %v", lost)
	}
	acks := l.Acks()
	if told != len(acks) {
		t.Errorf("told of %d of %d acknowledgements", told, len(acks))
	}
	writers := map[int]bool{}
	for _, a := range acks {
		writers[a.Writer] = true
	}
	if diff := cmp.Diff(map[int]bool{10: true, 11: true, 12: true}, writers); diff != "" {
		t.Errorf("writers: %s", diff)
	}
	if !slices.IsSortedFunc(acks, func(a, b Ack) int { return a.At.Compare(b.At) }) {
		t.Error("the acknowledgements are not in the order of their times")
	}
	victim := acks[len(acks)/2]
	server.Exec("DELETE FROM acked WHERE writer = $1 AND seq = $2", victim.Writer, victim.Seq)
	if diff := cmp.Diff([]Ack{victim}, missing(t, l)); diff != "" {
		t.Errorf("after a row was deleted: %s", diff)
	}
	// A row that was never acknowledged is neither lost nor found.
	server.Exec("INSERT INTO acked VALUES (99, 1)")
	if lost := missing(t, l); len(lost) != 1 {
		t.Errorf("after a row was added: %v", lost)
	}
}

// The server dies under the writers. They come back by themselves, the time without
// acknowledgements is measured, and rows without an answer do not count.
func TestWritersSurviveACrash(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	l := &Load{Config: server.Config(), Table: "acked", Writers: 2, Pause: time.Millisecond}
	end := begin(t, l)
	testkit.Eventually(t, 20*time.Second, enough(l, 25, time.Time{}))
	server.Kill()
	down := time.Now()
	testkit.Eventually(t, 5*time.Second, func() error {
		if time.Since(down) < 500*time.Millisecond || len(l.Errors()) == 0 {
			return errors.New("wait")
		}
		return nil
	})
	server.Up()
	testkit.Eventually(t, 20*time.Second, enough(l, 25, down))
	end()
	if lost := missing(t, l); len(lost) != 0 {
		t.Errorf("lost: %v", lost)
	}
	if outage := Outage(l.Acks(), down); outage < 500*time.Millisecond || outage > 20*time.Second {
		t.Errorf("outage %s", outage)
	}
	if text := strings.Join(l.Errors(), "\n"); !strings.Contains(text, "connect") {
		t.Errorf("errors %q", text)
	}
}

func TestOutage(t *testing.T) {
	begin := time.Now()
	at := func(writer int, ms int) Ack {
		return Ack{Writer: writer, At: begin.Add(time.Duration(ms) * time.Millisecond)}
	}
	acks := []Ack{at(1, 0), at(2, 5), at(1, 900), at(2, 910), at(1, 1000), at(2, 1400), at(1, 1100)}
	cases := []struct{ since, want int }{
		{0, 905},    // the worst of both writers
		{950, 490},  // a gap counts by its end
		{1400, 0},   // nothing ended after
		{5000, 0},   // nor here
		{905, 905},  // it ended a moment after
		{1050, 490}, // the first writer's gap of 100 is smaller
	}
	for _, c := range cases {
		got := Outage(acks, begin.Add(time.Duration(c.since)*time.Millisecond))
		if got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("since %d ms: %s, want %d ms", c.since, got, c.want)
		}
	}
	if got := Outage(nil, begin); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
}

// If a server cannot be asked, that does not prove that nothing is missing.
func TestMissingNeedsTheServer(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	config := server.Config()
	if _, err := Missing(t.Context(), config, "nothing", nil); err == nil {
		t.Error("no table, no error")
	}
	server.Kill()
	if _, err := Missing(t.Context(), config, "acked", nil); err == nil {
		t.Error("no server, no error")
	}
}
