package run

import (
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/pgbench"
	"howdah/internal/lab/report"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
	"howdah/internal/lab/tpcc"
	"howdah/internal/testkit/depth"
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
		if p.Struck != "" || len(p.Errors) > 0 || f["nopm"] < 100 || f["tpm"] <= 0 || f["failed"] != 0 || f["client_cpu"] <= 0 || f["client_cpu_per_1000_nopm"] <= 0 {
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
	depth.Deep(t)
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
	depth.Deep(t)
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

// What went wrong beside failed transactions is told, too.
func TestWhatUsersLost(t *testing.T) {
	t.Parallel()
	began := time.Unix(1790000000, 0)
	d := &doing{}
	d.ordered("a_", tpcc.Result{
		From: began, To: began.Add(10 * time.Second), Reconnected: 3, Refused: 2, Kinds: []tpcc.KindResult{{Calls: 1000, Retries: 4}, {Calls: 1000, Retries: 1}},
	})
	for name, want := range map[string]float64{"a_reconnected": 3, "a_refused": 2, "a_retries": 5, "a_failed": 0} {
		if got, known := d.point.Figures[name]; !known || got != want {
			t.Errorf("%s is %v (%t), want %v", name, got, known, want)
		}
	}
}

// Transactions that came too late are in a report, as figures and in words.
func TestWhatPgbenchLost(t *testing.T) {
	t.Parallel()
	r := pgbench.Result{Transactions: 85, Failed: 5, Late: 7, Skipped: 10, Took: time.Second}
	for what, c := range map[string]struct {
		a     experiment.PGBench
		names string
	}{
		"no limit":           {experiment.PGBench{}, ""},
		"a limit":            {experiment.PGBench{LimitMS: 100}, "late"},
		"a limit and a rate": {experiment.PGBench{LimitMS: 100, Rate: 50}, "late skipped"},
	} {
		d := &doing{}
		d.found(c.a, r, pgbench.Times{All: hdrhistogram.New(1, 1000, 1)})
		var names []string
		for _, name := range []string{"late", "skipped"} {
			if _, known := d.point.Figures[name]; known {
				names = append(names, name)
			}
		}
		if got := strings.Join(names, " "); got != c.names || !strings.Contains(strings.Join(d.point.Errors, " "), "10 of 100 transactions were not begun") {
			t.Errorf("%s: %q, %q", what, got, d.point.Errors)
		}
	}
}
