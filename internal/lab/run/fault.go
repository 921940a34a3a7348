package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/fault"
	"howdah/internal/lab/ledger"
	"howdah/internal/lab/result"
)

// ledgerTable has the rows of which every acknowledgement is counted.
const ledgerTable = "ledger"

// checkFaults refuses faults that cannot be made here, before anything runs.
func (o Options) checkFaults() error {
	m, ok := o.Target.(manager)
	if !ok {
		return nil // package target refuses all of them
	}
	for _, s := range o.Experiment.Settings() {
		for _, step := range o.Experiment.Each {
			a, err := o.Experiment.Arguments(step, s)
			if err != nil || a.Fault == nil {
				continue // what has no form was refused when the experiment was read
			}
			ground, err := m.Ground()
			if err != nil {
				return err
			}
			if err := ground.Check(a.Fault.Kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// fault makes a fault while writers write, undoes it, and finds out what they saw.
func (d *doing) fault(ctx context.Context, m manager, a experiment.Fault) error {
	ground, err := m.Ground()
	if err != nil {
		return err
	}
	if err := ground.Check(a.Kind); err != nil {
		return err
	}
	server := d.server()
	l := &ledger.Ledger{Connect: server.Config, Table: ledgerTable, Writers: a.Writers, Pause: time.Duration(a.PauseMS) * time.Millisecond}
	if err := l.Prepare(ctx); err != nil {
		return err
	}
	load, err := d.beside(ctx, a)
	if err != nil {
		return err
	}
	defer load.remove()
	writing, stop := context.WithCancel(ctx)
	var loads sync.WaitGroup
	loads.Go(func() { l.Run(writing) })
	var failed error
	loads.Go(func() { failed = load.run(writing) })
	f := result.Fault{Kind: a.Kind}
	whole, err := d.breaks(ctx, m, ground, a, &f)
	until := time.Now()
	stop()
	loads.Wait()
	// What was lost is looked for also where not all went as it should: then above all.
	if err = errors.Join(err, failed, d.audit(ctx, l, f.Began, until)); err != nil {
		return err
	}
	if err := load.found(ctx, d, f.Began, whole); err != nil {
		return err
	}
	if f.Postmortems, err = m.Failovers(ctx, f.Began); err != nil {
		return err
	}
	d.point.Faults = append(d.point.Faults, f)
	return nil
}

// breaks makes the fault, waits, undoes it, and waits until all is whole, at the moment that it returns.
func (d *doing) breaks(ctx context.Context, m manager, ground *fault.Ground, a experiment.Fault, f *result.Fault) (whole time.Time, err error) {
	if err := sleep(ctx, a.Before); err != nil {
		return whole, err
	}
	f.Began = d.mark(a.Kind + ": begins")
	made, err := ground.Make(ctx, a.Kind)
	// It is undone whatever happens, also when the user ends us.
	defer func() {
		_, undone := made.Undo()
		err = errors.Join(err, undone)
	}()
	if err != nil {
		return whole, err
	}
	f.Proof = made.Proof
	d.mark(a.Kind + ": " + made.Proof)
	if made.Lasts {
		if err := sleep(ctx, a.Seconds); err != nil {
			return whole, err
		}
		if f.Healed, err = made.Undo(); err != nil {
			return whole, err
		}
		d.mark(f.Healed)
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(a.Within)*time.Second)
	defer cancel()
	if err := m.WholeAgain(limited); err != nil {
		return whole, fmt.Errorf("it was not whole again within %d s: %w", a.Within, err)
	}
	whole = d.mark("all copies are ready again")
	d.figure("whole_s", whole.Sub(f.Began).Seconds())
	if f.Healed != "" {
		f.Healed += ", and "
	}
	f.Healed += "all copies are ready again"
	return whole, sleep(ctx, a.After)
}

func sleep(ctx context.Context, seconds int) error {
	if !pace.Sleep(ctx, time.Duration(seconds)*time.Second) {
		return ctx.Err()
	}
	return nil
}

// audit finds out for how long nobody could write, what clients saw, and what is lost.
func (d *doing) audit(ctx context.Context, l *ledger.Ledger, began, until time.Time) error {
	if began.IsZero() {
		return nil // it was ended before the fault
	}
	all := l.Entries()
	gap, rto := ledger.Gap(all, began, until)
	d.figure("rto_s", rto.Seconds())
	d.figure("rto_worst_s", ledger.WorstGap(all, began, until).Seconds())
	d.figure("acknowledged", float64(len(all)))
	missing, err := l.Missing(ctx)
	if err != nil {
		return err
	}
	d.figure("lost_rows", float64(len(missing)))
	d.figure("rpo_s", ledger.Span(missing).Seconds())
	if len(missing) > 0 {
		d.point.Errors = append(d.point.Errors, fmt.Sprintf("%d rows are lost that were acknowledged", len(missing)))
	}
	if rto > time.Second && gap.Add(rto).Before(until) {
		d.point.Marks = append(d.point.Marks, result.Mark{At: gap.UTC(), Text: "the last row is acknowledged"}, result.Mark{At: gap.Add(rto).UTC(), Text: "rows are acknowledged again"})
	}
	counts, words := l.Errors()
	total := 0
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		total += counts[state]
		d.figure("errors_"+state, float64(counts[state]))
		d.point.Errors = append(d.point.Errors, fmt.Sprintf("%d times: %s", counts[state], words[state]))
	}
	d.figure("errors", float64(total))
	at, rates := ledger.Rates(all)
	for n := range at {
		d.ticks = append(d.ticks, result.Tick{Point: d.number, At: at[n].Add(time.Second), Name: "tps", Value: rates[n]})
	}
	return wrote(all, began, until)
}

var (
	errNoRows = errors.New("no row was acknowledged before the fault, so that nobody knows what it did")
	errNoLoad = errors.New("the load beside the ledger did nothing before the fault, so that nobody knows what the fault did to it")
	errNoMore = errors.New("no row is acknowledged any more")
)

// stillWrites is how long before the end the last row may have been acknowledged.
const stillWrites = 5 * time.Second

// wrote refuses figures of a fault before which nobody wrote, or after which nobody does.
func wrote(all []ledger.Entry, began, until time.Time) error {
	switch {
	case len(all) == 0 || all[0].At.After(began):
		return errNoRows
	case all[len(all)-1].At.Before(until.Add(-stillWrites)):
		return errNoMore
	}
	return nil
}
