package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTargets(t *testing.T) {
	worst := target{Most: 60, Greatest: true}
	for _, c := range []struct {
		target target
		values []float64
		met    bool
	}{
		{target{}, []float64{99}, true},
		{most(1), []float64{0.9, 1, 7}, true},
		{most(1), []float64{0.9, 1.1, 7}, false},
		{least(0.95), []float64{0.1, 0.95, 0.96}, true},
		{least(0.95), []float64{0.1, 0.94, 0.96}, false},
		{worst, []float64{1, 1, 60}, true},
		{worst, []float64{1, 1, 61}, false},
	} {
		if c.target.met(c.values) != c.met {
			t.Errorf("%+v of %v: want %v", c.target, c.values, c.met)
		}
	}
	if most(1.5).String() != "≤ 1.5" || least(0.9).String() != "≥ 0.9" || (target{}).String() != "" {
		t.Error("a target is not shown as it is meant")
	}
}

func TestMedian(t *testing.T) {
	if median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1, 2, 3}) != 2.5 {
		t.Error("not the value in the middle")
	}
}

func TestSizes(t *testing.T) {
	if got, err := sizes("0.5,1,,50"); err != nil || !slices.Equal(got, []float64{0.5, 1, 50}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"x", "0", "-1"} {
		if _, err := sizes(text); err == nil {
			t.Errorf("%q is taken for a size", text)
		}
	}
}

// What does not fit is replaced by the largest size that does, once, and what is measured anyway is
// not measured again.
func TestSizesThatFit(t *testing.T) {
	all := []float64{0.5, 1, 5, 50}
	for _, c := range []struct {
		free int64
		want []float64
	}{
		{1000 * gb, []float64{0.5, 1, 50}},
		{40 * gb, []float64{0.5, 1, 9}},
		{24 * gb, []float64{0.5, 1}},
		{1 * gb, nil},
	} {
		if got := fitting(all, c.free, 5); !slices.Equal(got, c.want) {
			t.Errorf("%d GB are free: %v, want %v", c.free/gb, got, c.want)
		}
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	b := &bench{tmp: t.TempDir()}
	if err := b.fits(1 << 60); err == nil || !strings.Contains(err.Error(), "-size") {
		t.Errorf("%v does not say what to do", err)
	}
	if err := b.fits(0); err != nil {
		t.Error(err)
	}
}

func TestRowsAreChosen(t *testing.T) {
	b := &bench{only: regexp.MustCompile("^restore$|lag")}
	for name, want := range map[string]bool{"snapshot,restore,drill": true, "lag": true, "clone": false, "during": false} {
		if b.chosen(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}

func TestWhatIsComparedTakesTurns(t *testing.T) {
	var order []string
	for n := range 3 {
		do := func(name string) func() error { return func() error { order = append(order, name); return nil } }
		if err := inTurn(n, do("a"), do("b")); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(order, ""); got != "abbaab" {
		t.Error(got)
	}
}

func TestProgressOfALoad(t *testing.T) {
	l := &load{}
	start := time.Now()
	for n, line := range []string{
		"progress: 1.0 s, 100.0 tps, lat 1.000 ms stddev 0.1, 0 failed", "progress: 2.0 s, 300.5 tps, lat 1.000 ms stddev 0.1, 0 failed",
		"pgbench: error: it broke", "progress: 4.0 s, 900.0 tps, lat 1.000 ms stddev 0.1, 0 failed",
	} {
		l.read([]byte(line), start.Add(time.Duration(n+1)*time.Second))
	}
	if got, err := l.between(start, start.Add(2500*time.Millisecond)); err != nil || got != 200.25 {
		t.Errorf("%v, %v", got, err)
	}
	// The second before the moment counts as none of the time after it.
	if got, err := l.between(start.Add(1500*time.Millisecond), start.Add(5*time.Second)); err != nil || got != 900 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := l.between(start.Add(time.Hour), start.Add(2*time.Hour)); !errors.Is(err, errNoSample) || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("%v does not say why", err)
	}
}

func TestTables(t *testing.T) {
	b := &bench{size: 5, began: time.Now()}
	b.add("quick", 5, most(1), "", 0.5)
	b.add("quick", 0.5, most(1), "", 2)
	b.add("slow", 0, most(1), "s", 3)
	b.note("slow", 0, "why")
	b.rows = append(b.rows, row{Name: "broken", Err: "a\nb"})
	var out bytes.Buffer
	b.print(&out, machine{})
	for _, want := range []string{`quick +≤ 1 +1 +0\.50`, `slow +≤ 1 +s +1 +3\.00 .*MISSED; why`, `broken +not measured: a; b`, `quick, ratio +2\.00 +0\.50`} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("no line is as %q:\n%s", want, out.String())
		}
	}
}

func TestTimeLeft(t *testing.T) {
	b := &bench{began: time.Now().Add(-time.Minute), weight: 300, done: 100}
	if got := b.left(); got != "about 2 min are left" {
		t.Error(got)
	}
	b.done = 300
	if got := b.left(); got != "less than a minute is left" {
		t.Error(got)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := until(ctx, time.Hour, func() error { return errNotRestorable }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
