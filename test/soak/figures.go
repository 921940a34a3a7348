package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/lab/ack"
	"howdah/test/soak/model"
)

// Figures are what a soak did and saw, of all its sequences.
type Figures struct {
	mu         sync.Mutex
	operations int
	faults     int
	acked      int                      // of loads that ended
	current    map[int]int              // acknowledgements by serial, of the sequence that runs
	lost       int                      //
	reads      map[int]int              // by serial
	read       int                      // of loads that ended
	outages    map[string]time.Duration // the longest, by what was done
}

// rows notes what was looked for in a table, and found.
func (f *Figures) rows(serial, acked, missing, reads int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		f.current, f.reads = map[int]int{}, map[int]int{}
	}
	f.current[serial], f.reads[serial] = acked, reads
	f.lost += missing
}

// Sequence begins to count for another one.
func (f *Figures) Sequence() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.current {
		f.acked += n
	}
	for _, n := range f.reads {
		f.read += n
	}
	f.current, f.reads = nil, nil
}

// severalAtOnce is the kind of an outage that has more than one reason.
const severalAtOnce = "several at once"

// round counts a round that ended well, and the outages of its databases.
func (f *Figures) round(s *Soak, r model.Round, began time.Time) {
	longest := time.Duration(0)
	for _, m := range r.After.Databases {
		if !m.Stopped && !m.Follows() && r.Before.Databases[m.Name].Serial == m.Serial && !r.Before.Databases[m.Name].Follows() {
			longest = max(longest, ack.Outage(s.database(m.Serial).acks(), began))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outages == nil {
		f.outages = map[string]time.Duration{}
	}
	for _, step := range r.Steps {
		if step.IsFault() {
			f.faults++
		} else {
			f.operations++
		}
	}
	kind := severalAtOnce
	if len(r.Steps) == 1 {
		kind = kindOf(r.Steps[0])
	}
	f.outages[kind] = max(f.outages[kind], longest)
}

// kindOf is what is done, and to what role, without names and times.
func kindOf(s model.Step) string {
	if first := s.Word(0); first == "primary" || first == "standby" || strings.HasSuffix(s.Verb, "-part") {
		return s.Verb + " " + first
	}
	return s.Verb
}

// String is the end of a soak's report.
func (f *Figures) String() string {
	f.Sequence()
	f.mu.Lock()
	defer f.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%d operations, %d faults, %d rows acknowledged, %d lost, %d reads, none stale\n", f.operations, f.faults, f.acked, f.lost, f.read)
	fmt.Fprintln(&text, "longest time without an answer to a writer, of all databases:")
	for _, kind := range slices.Sorted(maps.Keys(f.outages)) {
		fmt.Fprintf(&text, "  %-24s %7.2f s\n", kind, f.outages[kind].Seconds())
	}
	return text.String()
}
