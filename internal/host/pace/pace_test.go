package pace

import (
	"fmt"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	var b Backoff
	begin := time.Now()
	var at []time.Duration
	for now := begin; now.Sub(begin) < 2*time.Minute; now = now.Add(100 * time.Millisecond) {
		if b.Ready(now) {
			b.Attempt(now)
			at = append(at, now.Sub(begin))
		}
	}
	var want []time.Duration
	for _, seconds := range []int{0, 1, 3, 7, 15, 31, 61, 91} {
		want = append(want, time.Duration(seconds)*time.Second)
	}
	if fmt.Sprint(at) != fmt.Sprint(want) {
		t.Errorf("attempts at %v, want %v", at, want)
	}
	later := begin.Add(91*time.Second + 2*time.Minute)
	if !b.Ready(later) {
		t.Error("not ready after an attempt that lasted")
	}
	b.Attempt(later)
	if b.Failures != 1 {
		t.Errorf("an attempt that lasted did not begin the count again: %d", b.Failures)
	}
}
