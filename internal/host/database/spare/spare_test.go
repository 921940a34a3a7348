package spare

import (
	"testing"
)

// One spare waits until it is the first that was taken; more of each version from then on.
func TestSparesWanted(t *testing.T) {
	s := New(nil)
	for _, step := range []struct{ major, ready, want int }{
		{15, 0, 1}, {15, 1, 1}, {16, 0, 1}, {15, 1, 1}, {15, 0, 2}, {15, 2, 2}, {15, 1, 2}, {16, 1, 1},
	} {
		if got := s.wanted(step.major, step.ready); got != step.want {
			t.Errorf("of version %d with %d ready: %d, want %d", step.major, step.ready, got, step.want)
		}
	}
	s.Keep = 0
	if got := s.wanted(17, 0); got != 0 {
		t.Errorf("where none is kept: %d", got)
	}
}
