package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/jackc/pgx/v5"

	"howdah/internal/host/pace"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/pgbench"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
	"howdah/internal/lab/verdict"
	"howdah/internal/observe"
)

// doing is a point that is being made.
type doing struct {
	Options
	run    *result.Result
	number int
	point  result.Point
	ticks  []result.Tick
	tell   func(step string)
}

func (d *doing) step(ctx context.Context, step experiment.Step, s experiment.Setting) error {
	a, err := d.Experiment.Arguments(step, s)
	switch {
	case err != nil:
		return err
	case a.Init != nil:
		return pgbench.Init(ctx, d.PGBench, d.server(), a.Init.Scale, a.Init.Fillfactor, "", a.Init.Unlogged)
	case a.PGBench != nil:
		return d.pgbench(ctx, *a.PGBench)
	case a.SQL != nil:
		return d.sql(ctx, *a.SQL)
	case a.TPCC != nil:
		return d.tpcc(ctx, *a.TPCC)
	case a.CatchUp != nil:
		return d.catchUp(ctx, *a.CatchUp, s)
	default:
		return d.serverStep(ctx, a.ServerSteps, s)
	}
}

// loadName is what the sessions of a load are called on the server. Those of others do not count as its own.
const loadName = "howdah-load"

func (d *doing) server() address.Server { return d.Target.At().In(target.Schema).As(loadName) }

// figure keeps a figure. What is no number is none: a server may say so, and no result can have it.
func (d *doing) figure(name string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		d.point.Errors = append(d.point.Errors, fmt.Sprintf("%s is no number: %v", name, value))
		return
	}
	if d.point.Figures == nil {
		d.point.Figures = map[string]float64{}
	}
	d.point.Figures[name] = value
}

func (d *doing) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, d.server().Config())
	if err != nil {
		return nil, fmt.Errorf("connect to the target: %w", err)
	}
	return conn, nil
}

// sql runs a statement, as often as it is to run, and keeps the time of all together.
func (d *doing) sql(ctx context.Context, a experiment.SQL) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if a.Value != "" {
		var value float64
		if err := conn.QueryRow(ctx, "SELECT ("+a.Text+")::float8").Scan(&value); err != nil {
			return err
		}
		d.figure(a.Value, value)
		return nil
	}
	began := time.Now()
	for range a.Each {
		if _, err := conn.Exec(ctx, a.Text); err != nil {
			return err
		}
	}
	if a.Figure != "" {
		d.figure(a.Figure, time.Since(began).Seconds())
	}
	return nil
}

// mostFailed is the share of transactions that may fail in a point that counts.
const mostFailed = 0.001

// pgbench warms up, and measures.
func (d *doing) pgbench(ctx context.Context, a experiment.PGBench) (err error) {
	o, remove, err := d.load(a)
	if err != nil {
		return err
	}
	defer remove()
	w, err := d.way(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.leave(ctx, w, err != nil || d.point.Struck != "")) }()
	if a.Warmup > 0 {
		warm := o
		warm.Time = time.Duration(a.Warmup) * time.Second
		if _, err := w.load(ctx, warm); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	o.Time, o.Transactions, o.Sample = time.Duration(a.Seconds)*time.Second, a.Transactions, 1
	end, err := d.pairs(ctx, w, a)
	if err != nil {
		return err
	}
	err = d.measured(ctx, a, o, w)
	return errors.Join(err, end())
}

// measured is the part of a load that counts.
func (d *doing) measured(ctx context.Context, a experiment.PGBench, o pgbench.Options, w way) error {
	return d.observed(ctx, a.Prefix, func(load interval) (verdict.Load, error) {
		o.Started = func(pid int) { load.begin(observe.Processes{Generator: []int{pid}, Known: w.known(nil)}) }
		tell, err := d.balanced(ctx, w, a.Prefix)
		if err != nil {
			return verdict.Load{}, err
		}
		found, err := w.load(ctx, o)
		load.end()
		if err != nil {
			return verdict.Load{}, err
		}
		l := loadOf(a, o, found)
		l.Beyond = w.beyond
		if l.Pooler, err = tell(); err != nil {
			d.point.Errors = append(d.point.Errors, err.Error())
		}
		times, err := pgbench.ReadTimes(o.Dir, len(o.Scripts))
		if err != nil {
			return verdict.Load{}, err
		}
		d.found(a, found, times)
		return l, nil
	})
}

// loadOf is what pgbench says of itself. With a rate its latency has the time until a turn, too.
func loadOf(a experiment.PGBench, o pgbench.Options, r pgbench.Result) verdict.Load {
	l := verdict.Load{
		Clients: a.Clients, Cores: float64(o.Cores()), TPS: r.TPS, LatencyMS: r.Latency, RoundTrips: roundTrips(a.Scripts),
		ErrorShare: float64(r.Failed) / float64(max(1, r.Transactions+r.Failed)),
	}
	if a.Rate > 0 {
		l.LatencyMS = 0
	}
	return l
}

// load is a run of pgbench, in a directory of its own, which remove removes.
func (d *doing) load(a experiment.PGBench) (o pgbench.Options, remove func(), err error) {
	dir, err := os.MkdirTemp(d.Dir, "pgbench-")
	if err != nil {
		return o, nil, fmt.Errorf("make a directory for pgbench: %w", err)
	}
	remove = func() { os.RemoveAll(dir) }
	o = pgbench.Options{
		Program: d.PGBench, Server: d.server(), Clients: a.Clients, Threads: a.Threads, Protocol: a.Protocol, Rate: a.Rate,
		Limit: time.Duration(a.LimitMS) * time.Millisecond, Vacuum: a.Vacuum, Dir: dir,
	}
	for n, s := range a.Scripts {
		script := pgbench.Script{Builtin: s.Builtin, Weight: s.Weight}
		if s.SQL != "" {
			script.File = filepath.Join(dir, fmt.Sprintf("script-%d.sql", n+1))
			if err := os.WriteFile(script.File, []byte(s.SQL+"\n"), 0o600); err != nil {
				remove()
				return o, nil, err
			}
		}
		o.Scripts = append(o.Scripts, script)
	}
	return o, remove, nil
}

// found keeps what a run of pgbench found.
func (d *doing) found(a experiment.PGBench, r pgbench.Result, times pgbench.Times) {
	prefix := a.Prefix
	d.point.Commands = append(d.point.Commands, quoted(r.Command))
	d.figure(prefix+"tps", r.TPS)
	d.figure(prefix+"transactions", float64(r.Transactions))
	d.figure(prefix+"failed", float64(r.Failed))
	if a.LimitMS > 0 {
		d.figure(prefix+"late", float64(r.Late))
	}
	if a.LimitMS > 0 && a.Rate > 0 {
		d.figure(prefix+"skipped", float64(r.Skipped))
	}
	if r.Skipped > 0 {
		d.point.Errors = append(d.point.Errors, fmt.Sprintf("%d of %d transactions were not begun, as it was too late for them", r.Skipped, r.Skipped+r.Transactions+r.Failed))
	}
	d.figure(prefix+"client_cpu", r.CPU.Seconds()/r.Took.Seconds())
	d.percentiles(prefix, times.All)
	for _, s := range r.Seconds {
		d.ticks = append(d.ticks,
			result.Tick{Point: d.number, At: s.At, Name: prefix + "tps", Value: s.TPS},
			result.Tick{Point: d.number, At: s.At, Name: prefix + "latency_ms", Value: s.Latency})
	}
	d.point.Errors = append(d.point.Errors, r.Messages...)
	switch failed := float64(r.Failed) / float64(max(1, r.Transactions+r.Failed)); {
	case r.Aborted > 0:
		d.point.Struck = fmt.Sprintf("%d of pgbench's clients ended early", r.Aborted)
	case failed > mostFailed:
		d.point.Struck = fmt.Sprintf("%.2f %% of the transactions failed", 100*failed)
	}
}

func (d *doing) percentiles(prefix string, h *hdrhistogram.Histogram) {
	if h.TotalCount() == 0 {
		return
	}
	for name, q := range map[string]float64{"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99.9": 99.9, "max": 100} {
		d.figure(prefix+"latency_"+name+"_ms", float64(h.ValueAtQuantile(q))/1000)
	}
	d.figure(prefix+"latency_mean_ms", h.Mean()/1000)
}

// mostStandbys is how many a server has at most, as far as is believed.
const mostStandbys = 100

var (
	errBehind   = errors.New("a standby has not caught up")
	errStandbys = errors.New("there are more standbys than a server has")
)

// standbys is how many there have to be: those that a Howdah was to make. What another target has is not
// known.
func (d *doing) standbys(s experiment.Setting) (int, error) {
	if _, ok := d.Target.(manager); !ok {
		return 0, nil
	}
	w, err := d.Experiment.Wanted(s)
	return w.Copies(), err
}

// catchUp waits until all standbys that are connected have replayed what is written by now. A figure for
// each has the time when it had: _1 is the first one. One that a Howdah was to make and that is not
// connected has not caught up.
func (d *doing) catchUp(ctx context.Context, a experiment.CatchUp, s experiment.Setting) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	began := time.Now()
	var until string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_current_wal_lsn()::text").Scan(&until); err != nil {
		return err
	}
	expected, err := d.standbys(s)
	if err != nil {
		return err
	}
	const sql = `SELECT coalesce(string_agg(application_name, ', ') FILTER (WHERE late), ''), count(*) FILTER (WHERE NOT late)
		FROM (SELECT application_name, replay_lsn IS NULL OR replay_lsn < $1::pg_lsn AS late FROM pg_catalog.pg_stat_replication
			WHERE state IN ('streaming', 'catchup')) s`
	for seen := 0; ; {
		var late string
		var done int
		if err := conn.QueryRow(ctx, sql, until).Scan(&late, &done); err != nil {
			return err
		}
		if done > mostStandbys {
			return fmt.Errorf("%w: %d of them", errStandbys, done)
		}
		for ; seen < done; seen++ {
			d.figure(fmt.Sprintf("%s_%d", a.Figure, seen+1), time.Since(began).Seconds())
		}
		switch {
		case late == "" && done >= expected:
			if done == 0 {
				return nil // nobody was waited for, which is no figure
			}
			d.figure(a.Figure, time.Since(began).Seconds())
			return nil
		case time.Since(began) > time.Duration(a.Within)*time.Second:
			return fmt.Errorf("%w within %d s: %d of %d have, and %q have not", errBehind, a.Within, done, expected, late)
		}
		if !pace.Sleep(ctx, lookEvery) {
			return ctx.Err()
		}
	}
}

const lookEvery = 50 * time.Millisecond
