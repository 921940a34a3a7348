package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/lab/pgbench"
	"howdah/internal/testkit/pgtest"
)

func TestWhenThroughputIsBack(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	series := func(tps ...float64) (all []pgbench.Second) {
		for n, f := range tps {
			all = append(all, pgbench.Second{At: began.Add(time.Duration(n+1) * time.Second), TPS: f})
		}
		return all
	}
	for name, c := range map[string]struct {
		tps           []float64
		before, after float64
		back, cut     time.Duration
		ok            bool
	}{
		"at once":              {tps: []float64{100, 100, 100, 40, 95, 95, 95}, before: 100, after: 95, back: 500 * time.Millisecond, ok: true},
		"slowly":               {tps: []float64{100, 100, 100, 0, 20, 50, 80, 90, 90, 92}, before: 100, after: 70.333, back: 3500 * time.Millisecond, ok: true},
		"for two seconds only": {tps: []float64{100, 100, 100, 0, 99, 99, 0, 0}, before: 100, after: 49.5},
		"cut later":            {tps: []float64{100, 100, 100, 100, 100, 100, 0, 95, 95, 95}, cut: 2600 * time.Millisecond, before: 100, after: 95, back: 3500 * time.Millisecond, ok: true},
		"never":                {tps: []float64{100, 100, 100}, before: 100},
		"nothing before":       {},
	} {
		// It is asked for half a second into the fourth second.
		asked := began.Add(3500 * time.Millisecond)
		before, after, back, ok := comeBack(series(c.tps...), asked, asked.Add(c.cut), 0.9)
		if before != c.before || after-c.after > 0.01 || c.after-after > 0.01 || back != c.back || ok != c.ok {
			t.Errorf("%s: %.3f, %.3f, %s, %v", name, before, after, back, ok)
		}
	}
}

func TestWhatVacuumTakes(t *testing.T) {
	t.Parallel()
	const message = "finished vacuuming\nsystem usage: CPU: user: 0.12 s, system: 0.03 s, elapsed: 0.20 s"
	if got := cpuOf(message); got < 0.149 || got > 0.151 {
		t.Error(got)
	}
	if got := cpuOf("nothing of the kind"); got != 0 {
		t.Error(got)
	}
}

const bulky = `
name: bulky
title: {en: Bulky}
question: {en: Bulky}
runs: 1
each:
  - bulk_load: {rows: 5000, figure: load_s}
  - sql: {text: "UPDATE bulk SET balance = 1 WHERE id <= 1000", figure: update_s}
  - vacuum: {table: bulk, figure: vacuum_s}
  - sql: {text: "SELECT count(*) FROM bulk", value: rows}
  - buffers: {table: bulk}
  - crash: {table: bulk, optional: true}
quick: {}
`

// What any server can do is done with any server. What it cannot do is said, if it is optional.
func TestStepsOfBulk(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), bulky)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Points) != 1 || r.Points[0].Struck != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	f := r.Points[0].Figures
	if f["rows"] != 5000 || f["load_s"] <= 0 || f["update_s"] <= 0 || f["vacuum_s"] <= 0 || f["cached_primary"] < 50 || f["cached_primary"] > 100 {
		t.Errorf("%v", f)
	}
	if len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], "left out: crash") {
		t.Errorf("%q", r.Problems)
	}
}

// An experiment that needs a Howdah is refused before anything runs.
func TestWhatNeedsAHowdahIsRefused(t *testing.T) {
	t.Parallel()
	o := given(t, pgtest.Start(t, pgtest.Options{}), strings.Replace(bulky, ", optional: true", "", 1))
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the target has to let the lab break its hosts") {
		t.Error(err)
	}
}

// Seconds in which no load could run have no transactions: they are in the plot, and in what is compared.
func TestAnOutageIsSilence(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	whole := withSilence([]pgbench.Second{{At: at(1), TPS: 100}, {At: at(2), TPS: 100}, {At: at(5.2), TPS: 90}, {At: at(6.2), TPS: 100}, {At: at(7.2), TPS: 100}})
	var rates []float64
	for _, s := range whole {
		rates = append(rates, s.TPS)
	}
	if !slices.Equal(rates, []float64{100, 100, 0, 0, 90, 100, 100}) {
		t.Fatalf("the rates are %v", rates)
	}
	before, after, back, ok := comeBack(whole, at(2), at(2.1), 0.9)
	if before != 100 || after >= 100 || !ok || back < 2*time.Second {
		t.Errorf("before %v, after %v, back after %s, %v", before, after, back, ok)
	}
	if len(withSilence(nil)) != 0 {
		t.Error("nothing becomes something")
	}
}
