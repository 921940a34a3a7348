package run

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/report"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
	"howdah/internal/testkit/pgtest"
)

// shortE5 is e5 as a quick run has it, shorter.
func shortE5(t *testing.T) string {
	t.Helper()
	source, err := experiment.Source("e5")
	if err != nil {
		t.Fatal(err)
	}
	short := strings.NewReplacer(
		"warehouses: 4,", "warehouses: 1,", "ramp_up: 2, seconds: 7}", "ramp_up: 1, seconds: 3}", "users: [1, 4, 16]}", "users: [1, 3]}\n  runs: 2",
	).Replace(string(source))
	if strings.Count(short, "\n") != strings.Count(string(source), "\n")+1 || strings.Contains(short, "seconds: 7") {
		t.Fatal("e5 has another quick form by now")
	}
	return short
}

func TestE5(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	o := given(t, s, shortE5(t))
	o.Experiment, o.Quick = o.Experiment.Quickly(), true
	steps := map[string]bool{}
	o.Told = func(p Progress) {
		step, _, _ := strings.Cut(p.Step, ",")
		steps[step] = true
	}
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 4 || len(r.Problems) > 0 || len(r.Settings) != 2 || len(r.Comparisons) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for n, p := range r.Points {
		f := p.Figures
		if p.Struck != "" || len(p.Errors) > 0 || f["nopm"] < 100 || f["tpm"] < f["nopm"] || f["failed"] != 0 || f["client_cpu"] <= 0 || f["client_cpu_per_1000_nopm"] <= 0 {
			t.Errorf("%+v", p)
		}
		for _, kind := range []string{"new_order", "payment"} { // the others are rare
			if f[kind+"_p50_ms"] <= 0 || f[kind+"_p95_ms"] < f[kind+"_p50_ms"] || f[kind+"_p99_ms"] < f[kind+"_p95_ms"] {
				t.Errorf("%s: %+v", kind, f)
			}
		}
		// It is built once, and used again.
		if built := f["build_seconds"] > 0; built != (n == 0) {
			t.Errorf("point %d was built in %g s", n, f["build_seconds"])
		}
	}
	for _, step := range []string{"tpcc", "tpcc: build 1 warehouses: load", "tpcc: build 1 warehouses: finished", "tpcc: ramp up", "tpcc: measure", "tpcc: check"} {
		if !steps[step] {
			t.Errorf("nobody was told of %q: %v", step, steps)
		}
	}
	checkTicks(t, o.Dir, r)
	if err := report.Write(o.Dir, report.Languages...); err != nil {
		t.Error(err)
	}
	if outside := schemas(t, s); outside != target.Schema {
		t.Errorf("tables are in %s", outside)
	}
}

// checkTicks wants each whole second of the measured time of each point, and no other one.
func checkTicks(t *testing.T, dir string, r *result.Result) {
	t.Helper()
	ticks, err := result.ReadSeries(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	for _, tick := range ticks {
		p := r.Points[tick.Point]
		if tick.At.Before(p.Began) || tick.At.After(p.Began.Add(time.Duration((p.Took+1)*float64(time.Second)))) || tick.Value < 0 {
			t.Errorf("%+v of %+v", tick, p)
		}
		if tick.Name == "nopm" {
			seen[tick.Point]++
		}
	}
	for n := range r.Points {
		if seen[n] < 1 || seen[n] > 4 {
			t.Errorf("point %d has %d seconds", n, seen[n])
		}
	}
}

// A database that is not consistent after a run strikes the point, and the next one gets a new database.
func TestAnInconsistentDatabase(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	o := given(t, s, `
name: broken
title: {en: Broken}
question: {en: Broken}
factors: [{name: damage, title: {en: Damage}, levels: [1, 0]}]
runs: 1
prepare:
  - tpcc: {warehouses: 1, users: 1, seconds: 1, mode: specification, calls: client, all_warehouses: true, workers: 2}
each:
  - sql: {text: "DO $$ BEGIN IF to_regclass('warehouse') IS NOT NULL THEN UPDATE warehouse SET w_ytd = w_ytd + ${damage}; END IF; END $$"}
  - tpcc: {warehouses: 1, users: 2, seconds: 1, mode: specification, calls: client, prefix: client_}
quick: {}
`)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 2 || len(r.Problems) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	broken, whole := r.Points[0], r.Points[1]
	if !strings.Contains(broken.Struck, "breaks conditions 1, 8 of") || len(broken.Errors) != 2 || broken.Figures["client_build_seconds"] > 0 {
		t.Errorf("%+v", broken)
	}
	if whole.Struck != "" || whole.Figures["client_build_seconds"] <= 0 || whole.Figures["client_nopm"] <= 0 {
		t.Errorf("%+v", whole)
	}
}

// The tables of a mode are not used in the other, nor with another number of warehouses.
func TestADatabaseThatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	o := given(t, s, `
name: fits
title: {en: Fits}
question: {en: Fits}
factors: [{name: mode, title: {en: Mode}, levels: [compatible, specification]}]
runs: 1
each:
  - tpcc: {warehouses: 1, users: 1, seconds: 1, mode: $mode, prefix: first_}
  - tpcc: {warehouses: 1, users: 1, seconds: 1, mode: $mode, prefix: again_}
  - tpcc: {warehouses: 1, users: 1, seconds: 1, mode: $mode, fresh: true, prefix: fresh_}
quick: {}
`)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 2 || len(r.Problems) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, p := range r.Points {
		f := p.Figures
		if f["first_build_seconds"] <= 0 || f["again_build_seconds"] != 0 || f["fresh_build_seconds"] <= 0 || f["again_nopm"] <= 0 {
			t.Errorf("%+v", p)
		}
	}
}
