package run

import (
	"context"
	"fmt"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/pgbench"
	"howdah/internal/lab/result"
	"howdah/internal/lab/tpcc"
)

// beside is a load that runs beside the ledger while something is broken.
type beside interface {
	// run runs until ctx ends, whatever breaks meanwhile. It is called once.
	run(ctx context.Context) error
	// found keeps what the load found. The fault began at a moment, and all was whole again at another
	// one; that is zero if it never was.
	found(ctx context.Context, d *doing, began, whole time.Time) error
	// remove removes what it made here.
	remove()
}

// prefixBeside is before the names of the figures of such a load. The ledger's own have none.
const prefixBeside = "load_"

// beside prepares the load of a fault, and its data.
func (d *doing) beside(ctx context.Context, a experiment.Fault) (beside, error) {
	switch {
	case a.Load != nil:
		if a.Scale > 0 {
			d.tell(fmt.Sprintf("fault: pgbench's tables, scale %d", a.Scale))
			if err := pgbench.Init(ctx, d.PGBench, d.server(), a.Scale, 0, "", false); err != nil {
				return nil, err
			}
		}
		o, remove, err := d.load(*a.Load)
		if err != nil {
			return nil, err
		}
		b := &benchBeside{options: o, removes: remove, atMost: a.AtMost()}
		b.options.Second = b.loading.second
		return b, nil
	case a.TPCC != nil:
		return &ordersBeside{d: d, a: *a.TPCC, atMost: a.AtMost()}, d.warehouses(ctx, d.server().Config(), *a.TPCC)
	}
	return nothingBeside{}, nil
}

// nothingBeside is the ledger alone.
type nothingBeside struct{}

func (nothingBeside) run(context.Context) error                                 { return nil }
func (nothingBeside) found(context.Context, *doing, time.Time, time.Time) error { return nil }
func (nothingBeside) remove()                                                   {}

// benchBeside is pgbench, which is started again whenever its sessions are cut.
type benchBeside struct {
	loading

	options pgbench.Options
	removes func()
	atMost  time.Duration
}

func (b *benchBeside) remove() { b.removes() }

func (b *benchBeside) run(ctx context.Context) error {
	b.loading.run(ctx, b.options, time.Now().Add(b.atMost))
	return nil
}

func (b *benchBeside) found(_ context.Context, d *doing, began, whole time.Time) error {
	b.seconds = withSilence(b.seconds)
	var before, after []pgbench.Second
	for _, s := range b.seconds {
		switch {
		case !s.At.After(began):
			before = append(before, s)
		case !whole.IsZero() && s.At.Add(-time.Second).After(whole):
			after = append(after, s)
		}
		d.ticks = append(d.ticks, result.Tick{Point: d.number, At: s.At, Name: prefixBeside + "tps", Value: s.TPS})
	}
	d.figure(prefixBeside+"tps_before", meanTPS(before))
	d.figure(prefixBeside+"tps_after", meanTPS(after))
	d.figure(prefixBeside+"cut", float64(len(b.ends)))
	d.point.Commands, d.point.Errors = append(d.point.Commands, b.commands...), append(d.point.Errors, b.messages...)
	if len(before) == 0 {
		return fmt.Errorf("%w: pgbench", errNoLoad)
	}
	return nil
}

// ordersBeside are virtual users, who begin sessions anew by themselves.
type ordersBeside struct {
	d      *doing
	a      experiment.TPCC
	atMost time.Duration
	result tpcc.Result
}

func (*ordersBeside) remove() {}

func (b *ordersBeside) run(ctx context.Context) error {
	o := usersOf(b.d, b.a)
	o.RampUp, o.Measure = 0, b.atMost
	var err error
	b.result, err = tpcc.Run(ctx, b.d.server().Config(), o)
	if ctx.Err() == nil { // otherwise it ends as it is told to
		return err
	}
	return nil
}

func (b *ordersBeside) found(ctx context.Context, d *doing, began, whole time.Time) error {
	var before, after []float64
	for _, s := range b.result.Seconds {
		begin := b.result.Began.Add(time.Duration(s.Second) * time.Second)
		end, nopm := begin.Add(time.Second), 60*float64(s.Done[tpcc.NewOrder])
		switch {
		case !end.After(began):
			before = append(before, nopm)
		case !whole.IsZero() && begin.After(whole):
			after = append(after, nopm)
		}
		d.ticks = append(d.ticks, result.Tick{Point: d.number, At: end.UTC(), Name: prefixBeside + "nopm", Value: nopm})
	}
	d.figure(prefixBeside+"nopm_before", mean(before))
	d.figure(prefixBeside+"nopm_after", mean(after))
	d.figure(prefixBeside+"reconnected", float64(b.result.Reconnected))
	d.point.Errors = append(d.point.Errors, orderErrors(b.result)...)
	if len(before) == 0 {
		return fmt.Errorf("%w: tpcc", errNoLoad)
	}
	// What was acknowledged in part, or twice, breaks a condition.
	d.tell("fault: check the warehouses")
	return d.consistent(ctx)
}
