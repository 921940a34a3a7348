// Package ledger writes rows to a server that is being broken, and keeps a ledger of those that the
// server acknowledged: so it knows for how long nobody could write, which errors clients saw, and whether
// a row that was acknowledged is lost.
package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/pace"
	"howdah/internal/lab/heard"
)

// Entry is a row that was acknowledged.
type Entry struct {
	Writer int
	Number int64
	At     time.Time // when the acknowledgement came
}

// Ledger has writers, each with a session of its own, and makes a new session whenever one is lost.
// Its exported fields do not change while it runs.
type Ledger struct {
	// Connect is how writers connect. It is asked anew for each session.
	Connect func() *pgx.ConnConfig
	Table   string // made anew by Prepare
	Writers int
	Pause   time.Duration // between two rows of a writer

	mu      sync.Mutex
	entries []Entry        // guarded by mu; in the order of time
	errors  map[string]int // guarded by mu; by SQLSTATE
	text    map[string]string
}

const (
	connectWithin = time.Second
	// again is the pause before a writer tries again.
	again = 10 * time.Millisecond
	// NoState is in the place of an SQLSTATE where no server answered.
	NoState = "none"
)

// Prepare makes the table anew.
func (l *Ledger) Prepare(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, l.Connect())
	if err != nil {
		return fmt.Errorf("connect to make the ledger's table: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range []string{"DROP TABLE IF EXISTS " + l.Table, "CREATE TABLE " + l.Table + " (writer int, number bigint, PRIMARY KEY (writer, number))"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make the ledger's table: %w", err)
		}
	}
	return nil
}

// Run writes until ctx ends.
func (l *Ledger) Run(ctx context.Context) {
	var all sync.WaitGroup
	for writer := range l.Writers {
		all.Go(func() { l.write(ctx, writer) })
	}
	all.Wait()
}

func (l *Ledger) write(ctx context.Context, writer int) {
	var conn *pgx.Conn
	defer func() { closed(conn) }()
	for number := int64(1); ctx.Err() == nil; number++ {
		var err error
		if conn == nil {
			conn, err = l.connect(ctx)
		}
		if err == nil {
			// A statement that waits is never given up: the server may still acknowledge it.
			_, err = conn.Exec(ctx, "INSERT INTO "+l.Table+" VALUES ($1, $2)", writer, number)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			l.acknowledged(writer, number)
			pace.Sleep(ctx, l.Pause)
		default:
			// A row without an answer may be there or not, so its number is not used again.
			l.failed(err)
			closed(conn)
			conn = nil
			pace.Sleep(ctx, again)
		}
	}
}

func (l *Ledger) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return pgx.ConnectConfig(ctx, l.Connect())
}

func closed(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it may be lost already
}

func (l *Ledger) acknowledged(writer int, number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, Entry{Writer: writer, Number: number, At: time.Now()})
}

func (l *Ledger) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.errors == nil {
		l.errors, l.text = map[string]int{}, map[string]string{}
	}
	state := heard.Among(l.errors, State(err))
	l.errors[state]++
	if l.text[state] == "" {
		l.text[state] = heard.Text(err.Error())
	}
}

// State is the SQLSTATE of an error, or NoState.
func State(err error) string { return heard.State(err, NoState) }

// Entries returns what was acknowledged so far, in the order of time.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Errors returns how many errors there were by SQLSTATE, and the words of one of each.
func (l *Ledger) Errors() (counts map[string]int, words map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts, words = map[string]int{}, map[string]string{}
	for state, n := range l.errors {
		counts[state], words[state] = n, l.text[state]
	}
	return counts, words
}

// Missing returns what was acknowledged and is not in the table.
func (l *Ledger) Missing(ctx context.Context) (missing []Entry, err error) {
	conn, err := pgx.ConnectConfig(ctx, l.Connect())
	if err != nil {
		return nil, fmt.Errorf("connect to compare the ledger: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, "SELECT writer, number FROM "+l.Table)
	if err != nil {
		return nil, fmt.Errorf("compare the ledger: %w", err)
	}
	type key struct {
		writer int
		number int64
	}
	// What the table has besides takes no memory.
	lost := map[key]bool{}
	all := l.Entries()
	for _, e := range all {
		lost[key{e.Writer, e.Number}] = true
	}
	var k key
	_, err = pgx.ForEachRow(rows, []any{&k.writer, &k.number}, func() error { delete(lost, k); return nil })
	if err != nil {
		return nil, fmt.Errorf("compare the ledger: %w", err)
	}
	for _, e := range all {
		if lost[key{e.Writer, e.Number}] {
			missing = append(missing, e)
		}
	}
	return missing, nil
}

// Gap is the longest time without any acknowledgement that ended after a moment, and when it began. What
// lasts until now counts, too.
func Gap(all []Entry, since, now time.Time) (began time.Time, longest time.Duration) {
	look := func(from, to time.Time) {
		if d := to.Sub(from); to.After(since) && d > longest {
			began, longest = from, d
		}
	}
	for n := 1; n < len(all); n++ {
		look(all[n-1].At, all[n].At)
	}
	if len(all) > 0 {
		look(all[len(all)-1].At, now)
	}
	return began, longest
}

// WorstGap is the longest time without an acknowledgement that any one writer had.
func WorstGap(all []Entry, since, now time.Time) (longest time.Duration) {
	byWriter := map[int][]Entry{}
	for _, e := range all {
		byWriter[e.Writer] = append(byWriter[e.Writer], e)
	}
	for _, own := range byWriter {
		_, gap := Gap(own, since, now)
		longest = max(longest, gap)
	}
	return longest
}

// Rates counts acknowledgements by seconds of the clock. Those of the first and the last one are left out, as
// they are not whole: at is when each begins.
func Rates(all []Entry) (at []time.Time, rate []float64) {
	if len(all) == 0 {
		return nil, nil
	}
	first := all[0].At.Truncate(time.Second).Add(time.Second)
	last := all[len(all)-1].At.Truncate(time.Second)
	counts := map[time.Time]float64{}
	for _, e := range all {
		counts[e.At.Truncate(time.Second)]++
	}
	for t := first; t.Before(last); t = t.Add(time.Second) {
		at, rate = append(at, t), append(rate, counts[t])
	}
	return at, rate
}

// Span is the time from the first to the last of what is missing: what a user would have to enter again. It
// is a millisecond at least where anything is missing.
func Span(missing []Entry) time.Duration {
	if len(missing) == 0 {
		return 0
	}
	first, last := missing[0].At, missing[0].At
	for _, e := range missing {
		if e.At.Before(first) {
			first = e.At
		}
		if e.At.After(last) {
			last = e.At
		}
	}
	return max(last.Sub(first), time.Millisecond)
}
