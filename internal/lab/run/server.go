package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/failover/postmortem"
	"howdah/internal/host/pace"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/fault"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
)

// manager is a target whose server can be restarted, handed over and broken.
type manager interface {
	keeper
	Reboot(ctx context.Context) error
	Failover(ctx context.Context) error
	Whole(ctx context.Context) error
	WholeAgain(ctx context.Context) error
	Nodes(ctx context.Context) ([]target.Node, error)
	Failovers(ctx context.Context, since time.Time) ([]postmortem.Record, error)
	Ground() (*fault.Ground, error)
}

// errTarget says that a step needs a Howdah. Experiments are refused before, so it is never met.
var errTarget = errors.New("the target cannot do that")

func (d *doing) manager() (manager, error) {
	m, ok := d.Target.(manager)
	if !ok {
		return nil, errTarget
	}
	return m, nil
}

// serverStep does what is done to the server, or by it.
func (d *doing) serverStep(ctx context.Context, a experiment.ServerSteps, s experiment.Setting) error {
	switch {
	case a.BulkLoad != nil:
		return d.bulkLoad(ctx, *a.BulkLoad)
	case a.Vacuum != nil:
		return d.vacuum(ctx, *a.Vacuum)
	case a.Buffers != nil:
		return d.buffers(ctx, *a.Buffers)
	case a.Crash != nil && a.Crash.Optional && !able(d.Target, experiment.NeedFaults):
		d.leftOut("crash: the hosts of " + d.Target.Name() + " cannot be broken")
		return nil
	}
	m, err := d.manager()
	if err != nil {
		return err
	}
	switch {
	case a.Restore != nil:
		w, err := d.Experiment.Wanted(s)
		if err != nil {
			return err
		}
		return d.timed(a.Restore.Figure, func() error { return m.Restore(ctx, w) })
	case a.Reboot != nil:
		return d.timed(a.Reboot.Figure, func() error { return m.Reboot(ctx) })
	case a.Failover != nil:
		return d.failover(ctx, m, *a.Failover)
	case a.Crash != nil:
		return d.crash(ctx, m, *a.Crash)
	}
	return d.fault(ctx, m, *a.Fault)
}

func able(t target.Target, need string) bool {
	for _, n := range t.Able() {
		if n == need {
			return true
		}
	}
	return false
}

// leftOut says once what is not measured.
func (d *doing) leftOut(what string) {
	text := "left out: " + what
	for _, p := range d.run.Problems {
		if p == text {
			return
		}
	}
	d.run.Problems = append(d.run.Problems, text)
}

// timed keeps how long something takes, as a figure if it has a name.
func (d *doing) timed(figure string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	if figure != "" {
		d.figure(figure, time.Since(began).Seconds())
	}
	return nil
}

// mark says what was done now.
func (d *doing) mark(text string) time.Time {
	now := time.Now().UTC()
	d.point.Marks = append(d.point.Marks, result.Mark{At: now, Text: text})
	return now
}

// countRows counts the rows of a table, as soon as the server answers.
func (d *doing) countRows(ctx context.Context, table string) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	for {
		if n, err = d.askRows(ctx, table); err == nil {
			return n, nil
		}
		if !pace.Sleep(ctx, lookEvery) {
			return 0, fmt.Errorf("count the rows of %s: %w", table, err)
		}
	}
}

// answersWithin is after how long a server has to answer that was broken.
const answersWithin = 2 * time.Minute

func (d *doing) askRows(ctx context.Context, table string) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := d.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&n)
	return n, err
}

// crash kills the primary's postmaster, and finds out which rows are there afterwards.
func (d *doing) crash(ctx context.Context, m manager, a experiment.Crash) error {
	ground, err := m.Ground()
	if err != nil {
		return err
	}
	before, err := d.countRows(ctx, a.Table)
	if err != nil {
		return err
	}
	began := d.mark("the primary's postmaster is killed")
	made, err := ground.Make(ctx, "kill")
	if err != nil {
		return err
	}
	after, err := d.countRows(ctx, a.Table)
	if err != nil {
		return err
	}
	d.figure("down_s", time.Since(began).Seconds())
	d.figure("rows_before", float64(before))
	d.figure("rows_after", float64(after))
	f := result.Fault{Kind: "kill", Began: began, Proof: made.Proof}
	if err := m.WholeAgain(ctx); err != nil {
		return err
	}
	f.Healed = "all copies are ready again"
	if f.Postmortems, err = m.Failovers(ctx, began); err != nil {
		return err
	}
	d.point.Faults = append(d.point.Faults, f)
	return nil
}
