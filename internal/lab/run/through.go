package run

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/pace"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
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
	// pool is the pgpool on the way, or nil.
	pool *pgpool.Pool
}

// spareSessions are those that pgpool takes besides the load's: for one that has left, and whose process
// does not know it yet.
const spareSessions = 8

// way makes the way of a load ready. The caller has to leave it, unless there is an error.
func (d *doing) way(ctx context.Context, a experiment.PGBench) (w way, err error) {
	w = way{write: d.server(), read: d.server()}
	if a.Through == experiment.WayDirect {
		return w, nil
	}
	t, ok := d.Target.(reading)
	if !ok {
		return w, errTarget
	}
	if a.Through == experiment.WayReader {
		w.read, err = t.Reader(ctx)
		w.read = w.read.In(target.Schema)
		return w, err
	}
	nodes, err := t.Nodes(ctx)
	if err != nil {
		return w, err
	}
	o := pgpool.Options{Dir: d.Dir, Writer: d.Target.At(), Clients: a.Clients + 2*a.Stale + spareSessions}
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

// leave takes away what is on the way, also if ctx has ended.
func (w way) leave(ctx context.Context) error {
	if w.pool == nil {
		return nil
	}
	return w.pool.Stop(ctx)
}

// known adds what is on the way to the processes that are no strangers to the test.
func (w way) known(pids []int) []int {
	if w.pool == nil {
		return pids
	}
	return append(pids, w.pool.Processes()...)
}

// spent returns a function that tells how much of the processors pgpool takes since now, in processors.
func (d *doing) spent(w way, prefix string) (tell func()) {
	if w.pool == nil {
		return func() {}
	}
	began, before := time.Now(), w.pool.CPU()
	return func() { d.figure(prefix+"pgpool_cpu", (w.pool.CPU()-before)/time.Since(began).Seconds()) }
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
	if err := d.replayed(ctx); err != nil {
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
		if failed != nil {
			return failed
		}
		for name, value := range found.Figures() {
			d.figure(a.Prefix+name, value)
		}
		return nil
	}, nil
}

// replayWithin is how long standbys may take to replay what a load begins with.
const replayWithin = 5 * time.Minute

// replayed waits until all standbys that are connected have replayed what is written by now.
func (d *doing) replayed(ctx context.Context) error {
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
		late, err := behind(ctx, conn, until)
		if err != nil || late == 0 {
			return err
		}
		if !pace.Sleep(ctx, lookEvery) {
			return fmt.Errorf("%w within %s: %d of them", errBehind, replayWithin, late)
		}
	}
}

// behind counts the standbys that have not replayed as far as that.
func behind(ctx context.Context, conn *pgx.Conn, until string) (n int, err error) {
	const sql = `SELECT count(*) FROM pg_catalog.pg_stat_replication
		WHERE state IN ('streaming', 'catchup') AND (replay_lsn IS NULL OR replay_lsn < $1::pg_lsn)`
	err = conn.QueryRow(ctx, sql, until).Scan(&n)
	return n, err
}
