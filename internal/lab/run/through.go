package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/pace"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/pgbench"
	"howdah/internal/lab/pgpool"
	"howdah/internal/lab/stale"
	"howdah/internal/lab/target"
)

// reading is a target that knows its standbys.
type reading interface {
	// Nodes lists the standbys that serve reads.
	Nodes(ctx context.Context) ([]target.Node, error)
	// Reader is the endpoint for reads.
	Reader(ctx context.Context) (address.Server, error)
}

// CheckPrograms refuses an experiment that needs a program which is not installed.
func CheckPrograms(e *experiment.Experiment) error {
	if !e.PGPool() {
		return nil
	}
	if _, err := pgpool.Find(); err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	return nil
}

// way is how a load reaches the servers.
type way struct {
	write, read address.Server
	// beyond says that others take statements of it than the server that takes writes.
	beyond bool
	// patience is how long clients may take to end after their time, where others take statements.
	patience time.Duration
	// pool is the pgpool on the way, or nil.
	pool *pgpool.Pool
}

// way makes the way of a load ready. The caller has to leave it, unless there is an error.
func (d *doing) way(ctx context.Context, a experiment.PGBench) (w way, err error) {
	w = way{write: d.server(), read: d.server()}
	if a.Through == experiment.WayDirect {
		return w, nil
	}
	w.beyond, w.patience = true, lateBy
	t, ok := d.Target.(reading)
	if !ok {
		return w, errTarget
	}
	if a.Through == experiment.WayReader {
		reader, err := t.Reader(ctx)
		if err != nil {
			return w, fmt.Errorf("find the endpoint for reads: %w", err)
		}
		w.read = reader.In(target.Schema)
		return w, nil
	}
	nodes, err := t.Nodes(ctx)
	if err != nil {
		return w, err
	}
	o := pgpool.Options{Dir: d.Dir, Writer: d.Target.At(), Clients: a.Sessions()}
	for _, n := range nodes {
		o.Readers = append(o.Readers, n.Server)
	}
	if o.Program, err = pgpool.Find(); err != nil {
		return w, err
	}
	version, err := pgpool.Version(ctx, o.Program)
	if err != nil {
		return w, err
	}
	if w.pool, err = pgpool.Start(ctx, o); err != nil {
		return w, err
	}
	d.point.Commands = append(d.point.Commands, fmt.Sprintf("# %s, before %d servers", version, len(nodes)+1))
	w.write = w.pool.Server().In(target.Schema)
	w.read = w.write
	return w, nil
}

// leave takes away what is on the way, also if ctx has ended. Where something went wrong, the point keeps
// what pgpool said.
func (d *doing) leave(ctx context.Context, w way, failed bool) error {
	if w.pool == nil {
		return nil
	}
	err := w.pool.Ended()
	if failed && err == nil && ctx.Err() == nil {
		d.point.Errors = append(d.point.Errors, "pgpool: "+w.pool.Says())
	}
	if err == nil && ctx.Err() == nil {
		err = w.pool.Reached()
	}
	return errors.Join(err, w.pool.Stop(ctx))
}

// lateBy is the patience of a way. A client that waits for a server that stands still would do so for ever:
// pgpool does not look whether servers are well.
const lateBy = 2 * time.Minute

var errStands = errors.New("clients wait for a server that does not answer")

// load runs pgbench on a way.
func (w way) load(ctx context.Context, o pgbench.Options) (pgbench.Result, error) {
	o.Server = w.read
	if o.Time == 0 || !w.beyond {
		return pgbench.Run(ctx, o)
	}
	bounded, cancel := context.WithTimeout(ctx, o.Time+w.patience)
	defer cancel()
	r, err := pgbench.Run(bounded, o)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w, %s after their time: %w", errStands, w.patience, err)
	}
	return r, err
}

// known adds what is on the way to the processes that are no strangers to the test.
func (w way) known(pids []int) []int {
	if w.pool == nil {
		return pids
	}
	return append(pids, w.pool.Processes()...)
}

// balanced begins to look at pgpool. tell puts what it did since then into the point: how many processors it
// took, which it returns, too, and which share of the reads it gave to standbys.
func (d *doing) balanced(ctx context.Context, w way, prefix string) (tell func() (cpu float64, err error), err error) {
	if w.pool == nil {
		return func() (float64, error) { return 0, nil }, nil
	}
	first, err := w.pool.Selects(ctx)
	if err != nil {
		return nil, err
	}
	began, before := time.Now(), w.pool.CPU()
	return func() (float64, error) {
		cpu := max(0, w.pool.CPU()-before) / time.Since(began).Seconds()
		d.figure(prefix+"pgpool_cpu", cpu)
		last, err := w.pool.Selects(ctx)
		if err != nil || len(last) != len(first) {
			return cpu, err
		}
		all, standbys := int64(0), int64(0)
		for n := range last {
			if all += last[n] - first[n]; n > 0 {
				standbys += last[n] - first[n]
			}
		}
		if all > 0 {
			d.figure(prefix+"standby_reads_percent", 100*float64(standbys)/float64(all))
		}
		return cpu, nil
	}, nil
}

// stalePause is between the reads of a pair and its next write: pairs are not to be the load.
const stalePause = 10 * time.Millisecond

// pairs begins to look for stale reads. end stops that, and keeps what was seen.
func (d *doing) pairs(ctx context.Context, w way, a experiment.PGBench) (end func() error, err error) {
	if a.Stale == 0 {
		return func() error { return nil }, nil
	}
	if err := stale.Make(ctx, d.server(), a.Stale); err != nil {
		return nil, err
	}
	if err := d.replayed(ctx, a); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var found stale.Result
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		found, failed = stale.Run(ctx, stale.Options{Write: w.write, Read: w.read, Pairs: a.Stale, Pause: stalePause})
	}()
	return func() error {
		stop()
		<-done
		// What was seen until something failed is kept, too.
		for name, value := range found.Figures() {
			d.figure(a.Prefix+name, value)
		}
		return failed
	}, nil
}

// replayWithin is how long standbys may take to replay what a load begins with.
const replayWithin = 5 * time.Minute

// replayed waits until all standbys have replayed what is written by now: those that a Howdah was to make for
// this point, and any others that are connected.
func (d *doing) replayed(ctx context.Context, a experiment.PGBench) error {
	expected := 0
	if a.Through != experiment.WayDirect && d.point.Levels != nil {
		var err error
		if expected, err = d.standbys(d.point.Levels); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, replayWithin)
	defer cancel()
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var until string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_current_wal_lsn()::text").Scan(&until); err != nil {
		return err
	}
	for {
		done, late, err := behind(ctx, conn, until)
		if err == nil && late == 0 && done >= expected {
			return nil
		}
		if err == nil && pace.Sleep(ctx, lookEvery) {
			continue
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("%w within %s: %d of %d have", errBehind, replayWithin, done, max(expected, done+late))
		}
		return err
	}
}

// behind counts the standbys that have replayed as far as that, and those that have not.
func behind(ctx context.Context, conn *pgx.Conn, until string) (done, late int, err error) {
	const sql = `SELECT count(*) FILTER (WHERE NOT late), count(*) FILTER (WHERE late)
		FROM (SELECT replay_lsn IS NULL OR replay_lsn < $1::pg_lsn AS late FROM pg_catalog.pg_stat_replication
			WHERE state IN ('streaming', 'catchup')) s`
	err = conn.QueryRow(ctx, sql, until).Scan(&done, &late)
	return done, late, err
}
