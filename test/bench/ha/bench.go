package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/rig"
)

const defaultBusy = 10 * time.Minute

// bench is one run of the whole program.
type bench struct {
	binary string
	runs   int
	busy   time.Duration
	json   string
	keep   bool // the directories of the homes
	only   *regexp.Regexp

	rows      []row
	acks      int // all acknowledgements of all runs
	lost      int // of them, rows that were not there afterwards
	failovers int
}

// row is one line of the table.
type row struct {
	Name   string    `json:"name"`
	Target string    `json:"target"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
	Note   string    `json:"note,omitempty"` // what took the time in the greatest
	Err    string    `json:"error,omitempty"`
}

// scenario is what fills one row, or a few on one rig.
type scenario struct {
	name string
	rig  func(*rig.Options) // nil: as it comes
	run  func(ctx context.Context, b *bench, r *rig.Rig) error
}

func (b *bench) run(ctx context.Context) error {
	for _, s := range scenarios {
		if !b.only.MatchString(s.name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "== %s\n", s.name)
		if err := b.scenario(ctx, s); err != nil {
			b.rows = append(b.rows, row{Name: s.name, Err: err.Error()})
			fmt.Fprintf(os.Stderr, "   %v\n", err)
		}
	}
	b.print()
	if b.json != "" {
		if err := b.save(); err != nil {
			return err
		}
	}
	return b.verdict()
}

// verdict returns an error if something was not measured, or if a write was lost.
func (b *bench) verdict() error {
	var errs []error
	if b.lost > 0 {
		errs = append(errs, fmt.Errorf("%d acknowledged writes were lost", b.lost))
	}
	for _, r := range b.rows {
		if r.Err != "" {
			errs = append(errs, fmt.Errorf("%s: %s", r.Name, r.Err))
		}
	}
	return errors.Join(errs...)
}

func (b *bench) scenario(ctx context.Context, s scenario) (err error) {
	dir, err := os.MkdirTemp("", "bench-ha-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	binary, err := filepath.Abs(b.binary)
	if err != nil {
		return err
	}
	o := rig.Options{Binary: binary, Dir: dir}
	if s.rig != nil {
		s.rig(&o)
	}
	r, err := rig.Start(ctx, o)
	if err != nil {
		return fmt.Errorf("start (logs are kept in %s): %w", dir, err)
	}
	defer func() {
		err = errors.Join(err, r.Close())
		switch {
		case b.keep:
			fmt.Fprintf(os.Stderr, "   logs are kept in %s\n", dir)
		case err == nil:
			os.RemoveAll(dir)
		default:
			err = fmt.Errorf("%w (logs are kept in %s)", err, dir)
		}
	}()
	return s.run(ctx, b, r)
}

// add records one value of a row.
func (b *bench) add(name, target, unit string, value float64) {
	fmt.Fprintf(os.Stderr, "   %s  %-60s %8.3f %s\n", time.Now().UTC().Format(time.TimeOnly), name, value, unit)
	i := slices.IndexFunc(b.rows, func(r row) bool { return r.Name == name })
	if i < 0 {
		b.rows = append(b.rows, row{Name: name, Target: target, Unit: unit})
		i = len(b.rows) - 1
	}
	b.rows[i].Values = append(b.rows[i].Values, value)
}

func (b *bench) note(name, text string) {
	for i := range b.rows {
		if b.rows[i].Name == name {
			b.rows[i].Note = text
		}
	}
}

// explain says for a row what took the time in the run that was added last, if that run was the
// slowest so far.
func (b *bench) explain(name, text string) {
	for i, r := range b.rows {
		if r.Name == name && r.Values[len(r.Values)-1] == slices.Max(r.Values) {
			b.rows[i].Note = text
		}
	}
}

func (b *bench) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "what\ttarget\tunit\tn\tmedian\tgreatest\tleast\t")
	for _, r := range b.rows {
		if r.Err != "" {
			fmt.Fprintf(w, "%s\t\t\t\tnot measured: %s\t\t\t\n", r.Name, strings.ReplaceAll(r.Err, "\n", "; "))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.3f\t%.3f\t%.3f\t%s\n",
			r.Name, r.Target, r.Unit, len(r.Values), median(r.Values), slices.Max(r.Values), slices.Min(r.Values), r.Note)
	}
	fmt.Fprintf(w, "acknowledged writes lost, of %d in %d failovers\t0\trows\t\t%d\t\t\t\n", b.acks, b.failovers, b.lost)
	w.Flush()
}

func (b *bench) save() error {
	text, err := json.MarshalIndent(map[string]any{
		"rows": b.rows, "acks": b.acks, "lost": b.lost, "failovers": b.failovers,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode figures: %w", err)
	}
	return os.WriteFile(b.json, text, 0o644)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// check counts what was acknowledged to a load, and what of that is missing.
func (b *bench) check(ctx context.Context, l *ack.Load) error {
	acks := l.Acks()
	missing, err := ack.Missing(ctx, l.Config, l.Table, acks)
	if err != nil {
		return err
	}
	b.acks += len(acks)
	b.lost += len(missing)
	if len(missing) > 0 {
		return fmt.Errorf("%d acknowledged rows are missing, the first: %+v", len(missing), missing[0])
	}
	return nil
}
