// Package series has what an observation is made of: readings of counters, the rows of rates and
// gauges that come of them, and the sums over an interval.
//
// Invariants:
//   - What could not be read is absent. It is never a zero.
//   - A rate covers exactly the time between two readings of the same counter in the same epoch.
//     There is none over a reset, a restart or a smaller value.
//   - The package does no I/O and asks no clock.
package series

import (
	"maps"
	"time"
)

// Row is what was seen in one period. It is a line of the CSV and of the charts.
type Row struct {
	// At is the end of the period, in milliseconds since 1970.
	At int64 `json:"at"`
	// Seconds is how long the period was, by a clock that does not step. It is greater than 0.
	Seconds float64 `json:"seconds"`
	// Values has the columns by name. Columns says what they mean and in which unit they are.
	// What could not be read is not in it.
	Values map[string]float64 `json:"values"`
}

// Family is one reading of the counters that start anew together.
type Family struct {
	At       time.Time          // when they were read
	Epoch    string             // changes when they start anew
	Counters map[string]float64 // by column; they only grow within an epoch
}

// Reading is what was read at one moment.
type Reading struct {
	Families map[string]Family  // by a name of their own
	Gauges   map[string]float64 // by column
}

// NewReading returns an empty one.
func NewReading() Reading {
	return Reading{Families: map[string]Family{}, Gauges: map[string]float64{}}
}

// Add adds a family, unless it has no counters.
func (r Reading) Add(name, epoch string, at time.Time, counters map[string]float64) {
	if len(counters) > 0 {
		r.Families[name] = Family{At: at, Epoch: epoch, Counters: counters}
	}
}

// Rates returns how much each counter grew a second between two readings. A counter is absent if
// it was not read both times, or if its value became smaller. All are absent if the epoch changed.
func Rates(before, after Family) map[string]float64 {
	seconds := after.At.Sub(before.At).Seconds()
	if before.Epoch != after.Epoch || seconds <= 0 {
		return nil
	}
	rates := make(map[string]float64, len(after.Counters))
	for name, value := range after.Counters {
		if was, known := before.Counters[name]; known && value >= was {
			rates[name] = (value - was) / seconds
		}
	}
	return rates
}

// Tracker turns readings into rates. It remembers the last good reading of each family, so that a
// rate after a gap covers the gap. The zero value is ready. It is not for several goroutines.
type Tracker struct {
	last map[string]Family
}

// Add takes in a reading, and adds to values its gauges, and the rates since the readings before.
func (t *Tracker) Add(r Reading, values map[string]float64) {
	if t.last == nil {
		t.last = map[string]Family{}
	}
	maps.Copy(values, r.Gauges)
	for name, family := range r.Families {
		if before, known := t.last[name]; known {
			maps.Copy(values, Rates(before, family))
		}
		t.last[name] = family
	}
}
