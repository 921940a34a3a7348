package pace

import (
	"testing"
	"time"
)

// disk serves a block in so long, and forgets time that nobody used.
func (f *Flow) readFor(seconds int, batch int64, each time.Duration, now *time.Time) (perSecond float64) {
	all, end := int64(0), now.Add(time.Duration(seconds)*time.Second)
	for now.Before(end) {
		took := time.Duration(batch) * each
		*now = now.Add(took)
		*now = now.Add(f.Rest(batch, took, *now))
		all += batch
	}
	return float64(all) / float64(seconds)
}

func TestReadsLeaveHalfOfADisk(t *testing.T) {
	now := time.Now()
	f := NewFlow(8000, now)
	if got := f.readFor(10, 64, 10*time.Microsecond, &now); got < 7900 || got > 8100 {
		t.Errorf("a fast disk is read at %.0f blocks a second, and not at the rate of 8000", got)
	}
	if got := f.readFor(20, 64, 333*time.Microsecond, &now); got < 1300 || got > 1700 {
		t.Errorf("a disk of 3000 blocks a second is read at %.0f, and not at half of that", got)
	}
	if got := f.readFor(20, 64, 3*time.Millisecond, &now); got < 140 || got > 190 {
		t.Errorf("a disk of 333 blocks a second is read at %.0f, and not at half of that", got)
	}
	f.readFor(120, 64, 10*time.Microsecond, &now)
	if got := f.readFor(10, 64, 10*time.Microsecond, &now); got < 7900 {
		t.Errorf("a disk that is fast again is read at %.0f", got)
	}
	f.Rest(64, time.Hour, now)
	if rest := f.Rest(8, 0, now); rest != 2*time.Millisecond {
		t.Errorf("after one stall it reads 8 blocks, and rests %s: not at half of the rate", rest)
	}
	for range 20 {
		f.Rest(64, time.Hour, now)
	}
	if rest := f.Rest(8, 0, now); rest != 500*time.Millisecond {
		t.Errorf("a disk that stands still is asked for 8 blocks, and %s later for more: not for 16 in a second", rest)
	}
	if rest := f.Rest(0, time.Hour, now); rest != 0 {
		t.Errorf("it rests %s after it has read nothing", rest)
	}
	if rest := f.Rest(1, 0, now.Add(-time.Hour)); rest < 0 {
		t.Errorf("it rests %s", rest)
	}
}

func TestASingleBlockSaysNothing(t *testing.T) {
	now := time.Now()
	f := NewFlow(1000, now)
	f.Rest(1, 90*time.Millisecond, now)
	if rest := f.Rest(10, 0, now); rest != 10*time.Millisecond {
		t.Errorf("it rests %s after 10 blocks, and not 10 ms", rest)
	}
}
