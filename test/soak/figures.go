package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/testkit/ack"
	"howdah/test/soak/model"
)

// Figures are what a soak did and saw, over all its sequences.
type Figures struct {
	mu         sync.Mutex
	operations int
	faults     int
	restores   int
	acked      int                      // of loads that ended
	current    map[int]int              // acknowledgements by serial, of the sequence that runs
	lost       int                      //
	reads      map[int]int              // by serial
	read       int                      // of loads that ended
	outages    map[string]time.Duration // the longest, by what was done
}

// rows records what was looked for in a table, and what was found.
func (f *Figures) rows(serial, acked, missing, reads int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		f.current, f.reads = map[int]int{}, map[int]int{}
	}
	f.current[serial], f.reads[serial] = acked, reads
	f.lost += missing
}

// Sequence begins to count for another sequence.
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

// restore counts a database that was restored, whose rows are as they have to be.
func (f *Figures) restore() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restores++
}

// severalAtOnce is the kind of an outage with more than one reason.
const severalAtOnce = "several at once"

// round counts a round that ended well, and the outages of its databases.
func (f *Figures) round(ctx context.Context, s *Soak, r model.Round, began time.Time) {
	longest := time.Duration(0)
	for _, m := range r.After.Databases {
		before, there := r.Before.BySerial(m.Serial)
		if !there || !wrote(m) || !wrote(before) {
			continue
		}
		own := s.database(m.Serial)
		outage := ack.Outage(own.acks(), began)
		longest = max(longest, outage)
		if outage > noted {
			s.keepMembers(own.id)
			s.Log("  %s: no answer to a writer for %.1f s%s", m.Name, outage.Seconds(), s.failoversSince(ctx, own.id, began))
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

// noted is how long an outage must be to be told of.
const noted = 4 * time.Second

// failoversSince tells of a database's failovers in a few words: what led to each, and when its
// phases were, in seconds from then.
func (s *Soak) failoversSince(ctx context.Context, id string, began time.Time) string {
	all, err := s.Rig.Failovers(ctx, id)
	if err != nil {
		return "; its failovers are not known: " + err.Error()
	}
	var text strings.Builder
	for _, r := range all {
		if r.Detected.Before(began) {
			continue
		}
		fmt.Fprintf(&text, "; %s from %s, noticed after %.1f s", r.Cause, r.From, r.Detected.Sub(began).Seconds())
		for _, phase := range []struct {
			name string
			at   time.Time
		}{{"fenced", r.Fenced}, {"revoked", r.Revoked}, {"elected", r.Elected}, {"promoted", r.Promoted}, {"switched", r.Switched}, {"first write", r.FirstWrite}} {
			if !phase.at.IsZero() {
				fmt.Fprintf(&text, ", %s %+.2f", phase.name, phase.at.Sub(r.Detected).Seconds())
			}
		}
	}
	return text.String()
}

// wrote reports whether writers wrote to the database.
func wrote(d model.Database) bool { return !d.Stopped && !d.Follows() }

// kindOf returns what is done, and to what role, without names and times.
func kindOf(s model.Step) string {
	if first := s.Word(0); first == "primary" || first == "standby" || strings.HasSuffix(s.Verb, "-part") {
		return s.Verb + " " + first
	}
	return s.Verb
}

// String returns the end of a soak's report.
func (f *Figures) String() string {
	f.Sequence()
	f.mu.Lock()
	defer f.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%d operations, %d of them restores, %d faults, %d rows acknowledged, %d lost, %d reads, none stale\n", f.operations, f.restores, f.faults, f.acked, f.lost, f.read)
	fmt.Fprintln(&text, "longest time without an answer to a writer, of all databases:")
	for _, kind := range slices.Sorted(maps.Keys(f.outages)) {
		fmt.Fprintf(&text, "  %-24s %7.2f s\n", kind, f.outages[kind].Seconds())
	}
	return text.String()
}
