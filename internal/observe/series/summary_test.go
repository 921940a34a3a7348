package series

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// row ends after so many seconds.
func row(end, seconds float64, values map[string]float64) Row {
	return Row{At: at(end).UnixMilli(), Seconds: seconds, Values: values}
}

func TestSummarise(t *testing.T) {
	rows := []Row{
		row(1, 1, map[string]float64{"x": 100}), // before
		row(2, 1, map[string]float64{"x": 1, "gap": 4}),
		row(3, 1, map[string]float64{"x": 3}),
		row(5, 2, map[string]float64{"x": 6, "gap": 7}),
		row(6, 1, map[string]float64{"x": 100}), // after
	}
	s := Summarise(rows, at(1), at(5))
	want := Summary{
		From: at(1).UnixMilli(), To: at(5).UnixMilli(), Rows: 3,
		Columns: map[string]Stat{
			"x":   {Mean: 4, Min: 1, Max: 6, Seconds: 4},
			"gap": {Mean: 6, Min: 4, Max: 7, Seconds: 3},
		},
	}
	if diff := cmp.Diff(want, s, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	if total, known := s.Total("gap"); !known || !near(total, 18) {
		t.Errorf("total %v, %v", total, known)
	}
	if _, known := s.Mean("y"); known {
		t.Error("a column that nobody read has a mean")
	}
	if _, known := s.Min("y"); known {
		t.Error("a column that nobody read has a least value")
	}
	if s.Length() != 4*time.Second {
		t.Errorf("it is %s long", s.Length())
	}
}

func TestARowBelongsWhereItsMiddleIs(t *testing.T) {
	rows := []Row{row(1, 1, map[string]float64{"x": 1}), row(2, 1, map[string]float64{"x": 2}), row(3, 1, map[string]float64{"x": 3})}
	for _, c := range []struct {
		from, to float64
		rows     int
	}{
		{0, 3, 3}, {0.4, 3, 3}, {0.6, 3, 2}, {0, 2.5, 2}, {0, 2.6, 3}, {1.6, 2.4, 0}, {5, 9, 0}, {3, 0, 0},
	} {
		if s := Summarise(rows, at(c.from), at(c.to)); s.Rows != c.rows {
			t.Errorf("from %v to %v: %d rows", c.from, c.to, s.Rows)
		}
	}
	if s := Summarise(nil, at(0), at(9)); s.Rows != 0 || len(s.Columns) != 0 {
		t.Errorf("of nothing: %+v", s)
	}
}

// Nobody waited for an event in a row that counted the waits. In a row that did not count them
// nothing is known.
func TestAnEventThatIsAbsentIsNone(t *testing.T) {
	rows := []Row{
		row(1, 1, map[string]float64{Active: 4, WaitPrefix + "IO:DataFileRead": 4}),
		row(2, 1, map[string]float64{Active: 0}),
		row(3, 1, map[string]float64{}), // the server did not answer
	}
	stat := Summarise(rows, at(0), at(3)).Columns[WaitPrefix+"IO:DataFileRead"]
	if diff := cmp.Diff(Stat{Mean: 2, Min: 0, Max: 4, Seconds: 2}, stat); diff != "" {
		t.Error(diff)
	}
}

// The ratio of an interval is that of its sums: a row in which little was done weighs little.
func TestRatiosOfAnInterval(t *testing.T) {
	rows := []Row{
		row(1, 1, map[string]float64{DeviceReadOps: 1000, DeviceReadTime: 1000, DeviceReadLatency: 1}),
		row(2, 1, map[string]float64{DeviceReadOps: 1, DeviceReadTime: 100, DeviceReadLatency: 100}),
		row(3, 1, map[string]float64{DeviceReadOps: 0, DeviceReadTime: 0}),
	}
	stat := Summarise(rows, at(0), at(3)).Columns[DeviceReadLatency]
	want := Stat{Mean: 1100.0 / 1001, Min: 1, Max: 100, Seconds: 2}
	if diff := cmp.Diff(want, stat, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
}

func TestTop(t *testing.T) {
	s := Summary{Columns: map[string]Stat{
		"wait.A": {Mean: 1}, "wait.B": {Mean: 3}, "wait.C": {Mean: 0}, "wait.D": {Mean: 1}, "other": {Mean: 9},
	}}
	want := []Named{{"B", 3}, {"A", 1}, {"D", 1}}
	if diff := cmp.Diff(want, s.Top(WaitPrefix, 9)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:1], s.Top(WaitPrefix, 1)); diff != "" {
		t.Error(diff)
	}
	if got := s.Top("lock.", 3); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestColumnsAreExplained(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Columns {
		if names[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		names[c.Name] = true
		if c.Unit == "" || c.Doc == "" || strings.HasSuffix(c.Doc, ".") {
			t.Errorf("%s: unit %q, doc %q", c.Name, c.Unit, c.Doc)
		}
	}
	for name, want := range map[string]string{
		Active: Active, ActiveCPU: ActiveCPU, "wait.IO:DataFileRead": WaitPrefix, "db.commits": Commits, "db.temp_bytes": "db.",
		"standby.a.b.sync": StandbyPrefix, "lock.on.t": LockOnPrefix, DeviceBusy: DeviceBusy, "device.busy.vda": DeviceBusy + ".",
	} {
		if c, known := Explain(name); !known || c.Name != want {
			t.Errorf("%s is explained by %q", name, c.Name)
		}
	}
	if _, known := Explain("nothing"); known {
		t.Error("what is not ours is explained")
	}
}
