package spare

import (
	"testing"
	"time"
)

// One spare waits until it is the first that was taken. More of each version do from then on, once
// none was taken for a while.
func TestSparesWanted(t *testing.T) {
	s := New(nil)
	now := time.Now()
	for _, step := range []struct {
		after              time.Duration
		major, ready, want int
	}{
		{0, 15, 0, 1}, {0, 15, 1, 1}, {0, 16, 0, 1}, {time.Hour, 15, 1, 1},
		{0, 15, 0, 1}, {takenLately - 1, 15, 1, 1}, {1, 15, 1, 2}, {0, 15, 2, 2},
		{time.Hour, 15, 1, 1}, {0, 16, 1, 1}, {takenLately, 15, 1, 2}, {0, 16, 1, 1},
	} {
		now = now.Add(step.after)
		if got := s.wanted(step.major, step.ready, now); got != step.want {
			t.Errorf("of version %d with %d ready: %d, want %d", step.major, step.ready, got, step.want)
		}
	}
	s.Keep = 0
	if got := s.wanted(17, 0, now); got != 0 {
		t.Errorf("where none is kept: %d", got)
	}
}
