// Package stale finds out how many reads do not see what was written, and acknowledged, before them.
package stale

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/pace"
	"howdah/internal/lab/address"
	"howdah/internal/observe/counter"
)

// Table has a row for each pair of sessions. It is in the schema that sessions begin in.
const Table = "stale_reads"

// Options say what runs. All fields are required.
type Options struct {
	// Write is where rows are written, and Read where they are read back. Both see the lab's schema.
	Write, Read address.Server
	// Pairs is how many pairs of sessions there are: one writes, and the other one reads at once.
	Pairs int
	// Pause is between a pair's reads and its next write.
	Pause time.Duration
}

// Result is what all pairs saw together.
type Result struct {
	Reads int
	// Stale is how many reads gave an older value than the last one that was acknowledged before.
	Stale int
	// Oldest is the greatest age of a stale read: how long ago the first write had been acknowledged that
	// it lacks.
	Oldest time.Duration
	// Behind is the greatest number of writes that a read lacked.
	Behind int64
}

// Percent is the share of stale reads. It is 0 if nothing was read.
func (r Result) Percent() float64 { return 100 * float64(r.Stale) / float64(max(1, r.Reads)) }

// add puts in what another pair saw.
func (r *Result) add(other Result) {
	r.Reads, r.Stale = r.Reads+other.Reads, r.Stale+other.Stale
	r.Oldest, r.Behind = max(r.Oldest, other.Oldest), max(r.Behind, other.Behind)
}

// ErrImpossible says that a read gave what nobody had written yet.
var ErrImpossible = errors.New("a read gives what was not written yet")

// Make makes the table anew. Standbys that are read have to replay that before Run.
func Make(ctx context.Context, server address.Server, pairs int) error {
	conn, err := pgx.ConnectConfig(ctx, server.Config())
	if err != nil {
		return fmt.Errorf("connect to the target: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range []string{
		"DROP TABLE IF EXISTS " + Table, "CREATE TABLE " + Table + " (id int PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 10)",
		fmt.Sprintf("INSERT INTO "+Table+" SELECT i, 0 FROM pg_catalog.generate_series(1, %d) i", pairs),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make a table for stale reads: %w", err)
		}
	}
	return nil
}

// Run writes and reads until ctx ends, which is no error.
func Run(ctx context.Context, o Options) (r Result, err error) {
	results, errs := make([]Result, o.Pairs), make([]error, o.Pairs)
	var running sync.WaitGroup
	for n := range o.Pairs {
		running.Go(func() { results[n], errs[n] = o.pair(ctx, n+1) })
	}
	running.Wait()
	for _, one := range results {
		r.add(one)
	}
	return r, errors.Join(errs...)
}

// pair is one pair of sessions.
func (o Options) pair(ctx context.Context, id int) (r Result, err error) {
	defer func() {
		if ctx.Err() != nil {
			err = nil
		}
	}()
	writer, err := connect(ctx, o.Write)
	if err != nil {
		return r, fmt.Errorf("write for stale reads: %w", err)
	}
	defer writer.Close(context.WithoutCancel(ctx))
	reader, err := connect(ctx, o.Read)
	if err != nil {
		return r, fmt.Errorf("read for stale reads: %w", err)
	}
	defer reader.Close(context.WithoutCancel(ctx))
	var h history
	for {
		if _, err := writer.Exec(ctx, "UPDATE "+Table+" SET n = $1 WHERE id = $2", h.next(), id); err != nil {
			return r, fmt.Errorf("write for stale reads: %w", err)
		}
		h.acknowledged(time.Now())
		began := time.Now()
		var n int64
		if err := reader.QueryRow(ctx, "SELECT n FROM "+Table+" WHERE id = $1", id).Scan(&n); err != nil {
			return r, fmt.Errorf("read for stale reads: %w", err)
		}
		seen, err := h.judge(n, began)
		if err != nil {
			return r, err
		}
		r.add(seen)
		if !pace.Sleep(ctx, o.Pause) {
			return r, nil
		}
	}
}

// connect makes a session that prepares nothing: each statement is one message, which a pooler may send
// wherever it likes. Observers of a load leave it out.
func connect(ctx context.Context, server address.Server) (*pgx.Conn, error) {
	config := server.Config()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.RuntimeParams["application_name"] = counter.Aside
	return pgx.ConnectConfig(ctx, config)
}

// history has when each write was acknowledged: that of n at n-1.
type history struct{ at []time.Time }

// next is what is written next.
func (h *history) next() int64 { return int64(len(h.at)) + 1 }

// acknowledged says that what was next is written.
func (h *history) acknowledged(at time.Time) { h.at = append(h.at, at) }

// judge says what a read was that began at a moment, after all writes of the history.
func (h *history) judge(n int64, began time.Time) (r Result, err error) {
	last := int64(len(h.at))
	if n < 0 || n > last {
		return r, fmt.Errorf("%w: %d, after %d writes", ErrImpossible, n, last)
	}
	r.Reads = 1
	if n < last {
		r.Stale, r.Behind, r.Oldest = 1, last-n, began.Sub(h.at[n])
	}
	return r, nil
}

// Columns are the names of a Result's figures, without a prefix.
var Columns = []string{"stale_percent", "stale_reads", "checked_reads", "stale_age_ms", "stale_writes"}

// Figures are those of the result, by their names.
func (r Result) Figures() map[string]float64 {
	values := []float64{r.Percent(), float64(r.Stale), float64(r.Reads), float64(r.Oldest) / float64(time.Millisecond), float64(r.Behind)}
	all := map[string]float64{}
	for n, name := range Columns {
		all[name] = values[n]
	}
	return all
}
