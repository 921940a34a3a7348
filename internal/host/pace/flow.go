package pace

import "time"

const (
	// judged is how many blocks are judged together: a single one may wait for anything.
	judged = 32
	// growth is how much more may be read after each second.
	growth = 0.05
	// slowest is the least, in blocks a second.
	slowest = 16
)

// Flow says how long to rest between reads, so that a disk has as much room for others as for them: if
// reads take more than half of the time, there are half as many as were read in that time. From there
// on it grows slowly up to the rate. The library of cluster cache management does the same
// (extensions/ccm/src/pace.c says why).
//
// It is for one goroutine.
type Flow struct {
	rate, now float64 // blocks a second
	at        time.Time
	read      int64
	took      time.Duration
}

// NewFlow begins at a rate, in blocks a second, which is never exceeded.
func NewFlow(rate float64, at time.Time) *Flow { return &Flow{rate: rate, now: rate, at: at} }

// Rest returns how long to rest after so many blocks were read, which took so long until at.
func (f *Flow) Rest(blocks int64, took time.Duration, at time.Time) time.Duration {
	if blocks == 0 {
		return 0 // the time went elsewhere
	}
	f.read, f.took = f.read+blocks, f.took+took
	if f.read >= judged {
		f.judge(at)
		f.read, f.took = 0, 0
	}
	return max(min(took, time.Second), time.Duration(float64(blocks)/f.now*float64(time.Second))-took)
}

func (f *Flow) judge(at time.Time) {
	most := f.rate
	if f.took > 0 {
		most = float64(f.read) / f.took.Seconds() / 2
	}
	if most < f.now {
		f.now = max(most, f.now/2, min(f.rate, slowest)) // a single stall says little
	} else {
		f.now = min(f.rate, f.now*(1+growth*at.Sub(f.at).Seconds()))
	}
	f.at = at
}
