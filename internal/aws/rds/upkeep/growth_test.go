package upkeep

import (
	"testing"
	"time"
)

const gib = int64(1) << 30

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func TestHowFarStorageGrows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		size, most int
		predicted  int64
		want       int
	}{
		{"by ten GiB at least", 20, 1000, 0, 30},
		{"by a tenth", 500, 1000, 0, 550},
		{"by a tenth, rounded up", 101, 1000, 0, 112},
		{"by what is predicted", 100, 1000, 70*gib + 1, 171},
		{"to the most", 95, 100, 70 * gib, 100},
		{"by less than a tenth, to the most", 99, 100, 0, 100},
	} {
		if got := grown(tt.size, tt.most, tt.predicted); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Little is left for five minutes without a break before storage grows.
func TestWhenStorageGrows(t *testing.T) {
	t.Parallel()
	type look struct {
		at   time.Duration
		used int64 // of 100 GiB
	}
	low, enough := 90*gib, 89*gib
	for _, tt := range []struct {
		name    string
		looks   []look
		changed time.Duration // before noon; 0: never
		want    bool
	}{
		{"enough is left", []look{{0, enough}, {time.Hour, enough}}, 0, false},
		{"little is left, for a moment", []look{{0, low}}, 0, false},
		{"for less than five minutes", []look{{0, low}, {5*time.Minute - 1, low}}, 0, false},
		{"for five minutes", []look{{0, low}, {5 * time.Minute, low}}, 0, true},
		{"with a break", []look{{0, low}, {time.Minute, enough}, {2 * time.Minute, low}, {6 * time.Minute, low}}, 0, false},
		{"nothing is left", []look{{0, 101 * gib}, {5 * time.Minute, 101 * gib}}, 0, true},
		{"six hours after the last change", []look{{0, low}, {5 * time.Minute, low}}, changeEvery - 5*time.Minute, true},
		{"sooner after it", []look{{0, low}, {5*time.Minute + 1, low}}, changeEvery - 6*time.Minute, false},
		{"a change in the far future", []look{{0, low}, {5 * time.Minute, low}}, -24 * time.Hour, true},
		{"a clock that was set back", []look{{0, low}, {-time.Hour, low}, {-time.Hour + 4*time.Minute, low}}, 0, false},
	} {
		var s store
		now := noon
		for _, l := range tt.looks {
			now = noon.Add(l.at)
			s.see(now, l.used, 100*gib)
		}
		var changed time.Time
		if tt.changed != 0 {
			changed = noon.Add(-tt.changed)
		}
		if got := s.due(now, changed); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What grows is reckoned from the past hour.
func TestPrediction(t *testing.T) {
	t.Parallel()
	used := func(minute int) int64 { return 10*gib + int64(minute)*gib/60 } // a GiB an hour
	for _, tt := range []struct {
		name    string
		minutes int
		most    int64 // used at any time
		want    int64
	}{
		{"an hour", 60, 1 << 62, 7 * gib},
		{"three hours", 180, 1 << 62, 7 * gib},
		{"ten minutes", 10, 1 << 62, 7 * gib},
		{"too little is known", 4, 1 << 62, 0},
		{"it does not grow", 60, 10 * gib, 0},
		{"nothing is known", -1, 0, 0},
	} {
		var s store
		now, last := noon, int64(0)
		for m := 0; m <= tt.minutes; m++ {
			now, last = noon.Add(time.Duration(m)*time.Minute), min(used(m), tt.most)
			s.see(now, last, 100*gib)
			s.see(now.Add(time.Second), last, 100*gib)
		}
		got := s.predicted(now, last)
		if diff := got - tt.want; diff < -gib/100 || diff > gib/100 {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
		if len(s.used) > 61 {
			t.Errorf("%s: %d samples", tt.name, len(s.used))
		}
	}
}

// What was told is told again after enough was left.
func TestWhatWasToldOfStorage(t *testing.T) {
	t.Parallel()
	s := store{told: "no room"}
	if s.see(noon, 95*gib, 100*gib); s.told == "" {
		t.Error("it is told at each look")
	}
	if s.see(noon.Add(time.Minute), 50*gib, 100*gib); s.told != "" {
		t.Error("it is never told again")
	}
}
