package verdict

import (
	"cmp"
	"math"
	"slices"
)

// kneeGain is the gain of twice the clients below which more clients are not worth it.
const kneeGain = 0.10

// Step is one step of a sweep over clients.
type Step struct {
	Clients int     `json:"clients"` // greater than 0
	TPS     float64 `json:"tps"`     // the median of its runs
}

// Knee returns the last step that was worth it: the one before the first that gained less than a
// tenth. It returns false if every step gained more, so the sweep ended too early. A step that does
// not double the clients is counted as if it had gone on at the same rate until they were doubled.
// The steps may be in any order.
func Knee(steps []Step) (Step, bool) {
	sorted := ordered(steps)
	for i := 1; i < len(sorted); i++ {
		if gain(sorted[i-1], sorted[i]) < kneeGain {
			return sorted[i-1], true
		}
	}
	return Step{}, false
}

// around returns the step of a sweep that begins with so many clients, or the one that ends there if it is the
// last, and whether there is one.
func around(steps []Step, clients int) (from, to Step, known bool) {
	sorted := ordered(steps)
	at := slices.IndexFunc(sorted, func(s Step) bool { return s.Clients == clients })
	if at < 0 || len(sorted) < 2 {
		return Step{}, Step{}, false
	}
	at = min(at, len(sorted)-2)
	return sorted[at], sorted[at+1], true
}

// ordered leaves out steps that cannot be compared: without clients or throughput.
func ordered(steps []Step) []Step {
	sorted := slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return s.Clients <= 0 || s.TPS <= 0 })
	slices.SortStableFunc(sorted, func(a, b Step) int { return cmp.Compare(a.Clients, b.Clients) })
	return slices.CompactFunc(sorted, func(a, b Step) bool { return a.Clients == b.Clients })
}

// gain returns by which share throughput grows when the clients are doubled.
func gain(from, to Step) float64 {
	doublings := math.Log2(float64(to.Clients) / float64(from.Clients))
	return math.Pow(to.TPS/from.TPS, 1/doublings) - 1
}
