package probe

import (
	"testing"
	"time"
)

// A commit is told of when it alone has waited for long; many short waits, one after the
// other, are a slow standby.
func TestCommitsThatWait(t *testing.T) {
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	looks := []struct {
		at      float64
		waiting []string
		stuck   int
		since   float64
	}{
		{0, nil, 0, 0},
		{1, []string{"a"}, 0, 0},
		{2, []string{"a", "b"}, 0, 0},
		{5.9, []string{"a", "b"}, 0, 0},
		{6, []string{"a", "b"}, 1, 1},
		{8, []string{"b", "a", "c"}, 2, 1},
		{9, []string{"b"}, 1, 2},
		{10, nil, 0, 0},
		{11, []string{"a"}, 0, 0}, // begins anew
		{15.9, []string{"a"}, 0, 0},
		{16, []string{"a"}, 1, 11},
	}
	var w commitWaits
	for _, l := range looks {
		stuck, since := w.look(at(l.at), l.waiting)
		if stuck != l.stuck || stuck > 0 && !since.Equal(at(l.since)) {
			t.Errorf("at %v s: %d since %v, want %d since %v s", l.at, stuck, since, l.stuck, l.since)
		}
	}
	for s := range 60 {
		if stuck, _ := w.look(at(float64(20+s)), []string{time.Duration(s).String()}); stuck != 0 {
			t.Fatalf("%d commits that did not wait for long", stuck)
		}
	}
}
