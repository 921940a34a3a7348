package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"
)

// bench is one run of the whole program.
type bench struct {
	binary string
	size   float64 // GB
	rounds int
	growth []float64
	lag    time.Duration
	class  string
	tmp    string
	keep   bool
	json   string
	only   *regexp.Regexp

	began time.Time
	rows  []row
	// weight is how long all is expected to take, in seconds, and done of that what is over.
	weight, done float64
}

// row is one line of the table.
type row struct {
	Name   string  `json:"name"`
	GB     float64 `json:"gb,omitempty"` // size of the database
	Target target  `json:"target,omitzero"`
	Unit   string  `json:"unit"`
	// Values has one for each round.
	Values []float64 `json:"values"`
	Note   string    `json:"note,omitempty"`
	Err    string    `json:"error,omitempty"`
}

// target is what a row has to reach. The zero value is none.
type target struct {
	Most  float64 `json:"most,omitempty"`
	Least float64 `json:"least,omitempty"`
	// Greatest says that the greatest value counts, and not the median.
	Greatest bool `json:"greatest,omitempty"`
}

func most(v float64) target  { return target{Most: v} }
func least(v float64) target { return target{Least: v} }

func (t target) String() string {
	switch {
	case t.Most != 0:
		return fmt.Sprintf("≤ %g", t.Most)
	case t.Least != 0:
		return fmt.Sprintf("≥ %g", t.Least)
	}
	return ""
}

// met reports whether values reach a target.
func (t target) met(values []float64) bool {
	value := median(values)
	if t.Greatest {
		value = slices.Max(values)
	}
	return (t.Most == 0 || value <= t.Most) && (t.Least == 0 || value >= t.Least)
}

// scenario is what fills some rows. Each has a home of its own.
type scenario struct {
	name   string
	weight func(b *bench) float64 // how many seconds it is expected to take
	room   func(b *bench) int64   // how many bytes it needs
	run    func(ctx context.Context, b *bench) error
}

func (b *bench) run(ctx context.Context) error {
	b.began = time.Now()
	var chosen []scenario
	for _, s := range scenarios {
		if b.chosen(s.name) {
			chosen = append(chosen, s)
			b.weight += s.weight(b)
		}
	}
	if len(chosen) == 0 {
		return errors.New("no row is called so")
	}
	m, err := look(ctx, b)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range chosen {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(os.Stderr, "== %s\n", s.name)
		at := b.done
		err := b.fits(s.room(b))
		if err == nil {
			err = s.run(ctx, b)
		}
		if err != nil {
			b.rows = append(b.rows, row{Name: s.name, Err: err.Error()})
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
			fmt.Fprintf(os.Stderr, "   %v\n", err)
		}
		b.done = at + s.weight(b)
	}
	if ctx.Err() != nil {
		return errors.New("it was ended; what it had made is removed")
	}
	b.print(os.Stdout, m)
	if b.json != "" {
		errs = append(errs, b.save(m))
	}
	return errors.Join(errs...)
}

// did says that a share of a scenario is over.
func (b *bench) did(ctx context.Context, what string, seconds float64) {
	b.done += seconds
	fmt.Fprintf(os.Stderr, "   %s  %s; %s\n", time.Now().UTC().Format(time.TimeOnly), what, b.left())
}

// left says how long the rest will take: as long as was expected, by the pace so far.
func (b *bench) left() string {
	rest := b.weight - b.done
	if elapsed := time.Since(b.began).Seconds(); b.done > 0 && b.done > b.weight/20 {
		rest *= elapsed / b.done
	}
	if rest < 60 {
		return "less than a minute is left"
	}
	return fmt.Sprintf("about %.0f min are left", rest/60)
}

// add records one value of a row.
func (b *bench) add(name string, gb float64, t target, unit string, value float64) {
	fmt.Fprintf(os.Stderr, "   %s  %-62s %8.2f %s\n", time.Now().UTC().Format(time.TimeOnly), name, value, unit)
	r := b.row(name, gb)
	r.Target, r.Unit = t, unit
	r.Values = append(r.Values, value)
}

// note says more about a row.
func (b *bench) note(name string, gb float64, text string) { b.row(name, gb).Note = text }

func (b *bench) row(name string, gb float64) *row {
	i := slices.IndexFunc(b.rows, func(r row) bool { return r.Name == name && r.GB == gb })
	if i < 0 {
		b.rows = append(b.rows, row{Name: name, GB: gb})
		i = len(b.rows) - 1
	}
	return &b.rows[i]
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// until calls check until it returns nil. Unlike rig.Wait it ends with ctx.
func until(ctx context.Context, within time.Duration, check func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := check()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("not within %s: %w", within, err)
		}
		sleep(ctx, lookEvery)
	}
}

// lookEvery is how often the API is asked for what is waited for. It is a share of what is measured
// that does not matter, and takes little of the CPUs.
const lookEvery = 50 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
