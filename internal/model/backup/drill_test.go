package backup

import (
	"strings"
	"testing"
	"time"
)

func TestDrillsAreJudged(t *testing.T) {
	promised := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	good := Drilled{Newest: promised}
	for name, c := range map[string]struct {
		change func(*Drilled)
		want   string
	}{
		"all is well":    {func(*Drilled) {}, ""},
		"newer":          {func(d *Drilled) { d.Newest = promised.Add(time.Minute) }, ""},
		"older":          {func(d *Drilled) { d.Newest = promised.Add(-time.Microsecond) }, "was promised"},
		"nothing":        {func(d *Drilled) { d.Newest = time.Time{} }, "nobody knows when"},
		"damaged":        {func(d *Drilled) { d.Faults, d.Damaged = 2, []string{"shop, public.a: torn"} }, "shop, public.a: torn"},
		"damaged, mute":  {func(d *Drilled) { d.Faults = 1 }, "it is damaged"},
		"not restorable": {func(d *Drilled) { *d = Drilled{Unrestorable: "a file is missing"} }, "a file is missing"},
	} {
		d := good
		c.change(&d)
		if got := d.Judge(promised); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := (Drilled{}).Judge(time.Time{}); got != "" {
		t.Errorf("nothing was promised: %q", got)
	}
}

func TestWhatADrillMeasured(t *testing.T) {
	began := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	d := DrillRecord{Began: began, Drilled: Drilled{Files: 3 * time.Second, Replay: time.Second, Check: time.Hour}}
	if d.RTO() != 4*time.Second {
		t.Errorf("RTO %s", d.RTO())
	}
	if _, known := d.RPO(); known {
		t.Error("nothing says how new the data are")
	}
	for _, c := range []struct{ newest, want time.Duration }{{-20 * time.Second, 20 * time.Second}, {time.Second, 0}} {
		d.Newest = began.Add(c.newest)
		if got, known := d.RPO(); got != c.want || !known {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
