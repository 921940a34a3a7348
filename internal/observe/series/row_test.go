package series

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var begin = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

func TestRates(t *testing.T) {
	family := func(seconds float64, epoch string, counters map[string]float64) Family {
		return Family{At: at(seconds), Epoch: epoch, Counters: counters}
	}
	for _, c := range []struct {
		name          string
		before, after Family
		want          map[string]float64
	}{
		{"it grows", family(0, "a", map[string]float64{"x": 10, "y": 0}), family(2, "a", map[string]float64{"x": 30, "y": 0}), map[string]float64{"x": 10, "y": 0}},
		{"one is smaller", family(0, "a", map[string]float64{"x": 10, "y": 5}), family(1, "a", map[string]float64{"x": 9, "y": 6}), map[string]float64{"y": 1}},
		{"another epoch", family(0, "a", map[string]float64{"x": 10}), family(1, "b", map[string]float64{"x": 20}), nil},
		{"one is new", family(0, "a", map[string]float64{"x": 1}), family(1, "a", map[string]float64{"x": 1, "y": 7}), map[string]float64{"x": 0}},
		{"one is gone", family(0, "a", map[string]float64{"x": 1, "y": 7}), family(1, "a", map[string]float64{"x": 1}), map[string]float64{"x": 0}},
		{"no time has passed", family(1, "a", map[string]float64{"x": 1}), family(1, "a", map[string]float64{"x": 2}), nil},
	} {
		if diff := cmp.Diff(c.want, Rates(c.before, c.after)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A reading that failed is a gap. The next rate covers it, and a reset is a gap of one reading.
func TestATrackerBridgesGapsAndNoResets(t *testing.T) {
	steps := []struct {
		seconds float64
		read    bool
		epoch   string
		value   float64
		want    map[string]float64
	}{
		{0, true, "a", 100, map[string]float64{"g": 7}},
		{1, true, "a", 110, map[string]float64{"g": 7, "x.n": 10}},
		{2, false, "", 0, map[string]float64{"g": 7}},
		{3, true, "a", 150, map[string]float64{"g": 7, "x.n": 20}},
		{4, true, "b", 1000, map[string]float64{"g": 7}},
		{5, true, "b", 1003, map[string]float64{"g": 7, "x.n": 3}},
		{6, true, "b", 2, map[string]float64{"g": 7}},
		{7, true, "b", 4, map[string]float64{"g": 7, "x.n": 2}},
	}
	var tracker Tracker
	for _, s := range steps {
		reading := NewReading()
		reading.Gauges["g"] = 7
		if s.read {
			reading.Add("x", s.epoch, at(s.seconds), map[string]float64{"x.n": s.value})
		}
		values := map[string]float64{}
		tracker.Add(reading, values)
		if diff := cmp.Diff(s.want, values); diff != "" {
			t.Errorf("after %v s: %s", s.seconds, diff)
		}
	}
}

func TestAFamilyWithoutCountersIsNone(t *testing.T) {
	r := NewReading()
	r.Add("x", "", begin, nil)
	if len(r.Families) != 0 {
		t.Errorf("%v", r.Families)
	}
}

func TestDerive(t *testing.T) {
	for _, c := range []struct {
		name string
		has  map[string]float64
		want map[string]float64
	}{
		{"nothing is known", map[string]float64{}, map[string]float64{}},
		{"a latency", map[string]float64{DeviceReadTime: 30, DeviceReadOps: 10}, map[string]float64{DeviceReadLatency: 3}},
		{"no operation has no latency", map[string]float64{DeviceReadTime: 0, DeviceReadOps: 0}, map[string]float64{}},
		{"hits", map[string]float64{BlocksHit: 99, BlocksRead: 1}, map[string]float64{HitRatio: 0.99}},
		{"no block has no ratio", map[string]float64{BlocksHit: 0, BlocksRead: 0}, map[string]float64{}},
		{"commits share flushes", map[string]float64{Commits: 100, WALSyncs: 25, WALSyncTime: 50}, map[string]float64{CommitsPerSync: 4, WALSyncLatency: 2}},
		{"images", map[string]float64{WALImages: 1, WALBytes: 16384}, map[string]float64{FPIShare: 0.5}},
		{"images are never more than all", map[string]float64{WALImages: 9, WALBytes: 8192}, map[string]float64{FPIShare: 1}},
		{"strangers", map[string]float64{MachineTasks: 2, ServerCPU: 1, GeneratorCPU: 0.5, ObserverCPU: 0.01, MachineKernelThreads: 0.09}, map[string]float64{MachineForeign: 0.4}},
		{"a server that is not here says nothing of strangers", map[string]float64{MachineTasks: 2, GeneratorCPU: 0.5}, map[string]float64{}},
		{"parts that were read a moment later", map[string]float64{MachineTasks: 1, ServerCPU: 1.01}, map[string]float64{MachineForeign: 0}},
	} {
		values := map[string]float64{}
		for name, value := range c.has {
			values[name] = value
		}
		Derive(values)
		for name := range c.has {
			delete(values, name)
		}
		if diff := cmp.Diff(c.want, values, cmp.Comparer(near)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
