package plan

import (
	"fmt"
	"slices"
	"time"
)

// Cluster cache management: a standby keeps in its cache what the primary has in its own, so that a
// failover does not begin with a cold cache. Both members of a pair have it switched on: the one
// that is a standby acts, so nothing has to be changed when roles change (extensions/ccm).

// warm decides which two members are the pair. While nobody leads it stays as it is.
func (w *work) warm() {
	leader := w.leader()
	if leader == nil && w.Want.Warm {
		return
	}
	w.out.Layout.Warm, w.out.Layout.Cold = w.pair(leader)
	if w.out.Layout.Cold != "" {
		w.tell(Problem{ColdStandby, "", "cluster cache management is off: " + w.out.Layout.Cold})
	}
}

// pair returns the primary and the standby whose caches are to be alike, or why there is no such
// pair. The rules are Aurora's: both have promotion tier 0 and one class, and no other reader has
// tier 0. Members of an instance are alike by themselves.
func (k *known) pair(leader *Placed) (names []string, why string) {
	if !k.Want.Warm || len(k.Want.Seats) == 0 {
		return nil, ""
	}
	if k.Want.Upstream != nil {
		return nil, "what the database follows is no member of it"
	}
	own, seated := k.seatOf(leader)
	var readers []*Placed
	for _, m := range k.members() {
		if seat, ok := k.seatOf(m); m != leader && ok && seat.Tier == 0 && m.Going == Staying {
			readers = append(readers, m)
		}
	}
	switch {
	case !seated || own.Tier != 0:
		return nil, "the writer has not promotion tier 0"
	case len(readers) == 0:
		return nil, "there is no reader of promotion tier 0"
	case len(readers) > 1:
		return nil, fmt.Sprintf("there are %d readers of promotion tier 0, and there must be one", len(readers))
	}
	seat, _ := k.seatOf(readers[0])
	if seat.Limits.CPUs != own.Limits.CPUs || seat.Limits.MemoryBytes != own.Limits.MemoryBytes {
		return nil, "the reader of promotion tier 0 has another class than the writer"
	}
	names = []string{leader.Name, readers[0].Name}
	slices.Sort(names)
	return names, ""
}

const (
	// warmEnough is how much of the primary's hot cache a standby shall have before a planned failover,
	// in percent.
	warmEnough = 95
	// warmWithin is how long a planned failover waits for that.
	warmWithin = 30 * time.Second
)

// warming reports whether a planned failover may still wait for a warm cache. Its time begins with the
// first call for a request, and is used up once, whatever happens meanwhile.
func (w *work) warming(request string) bool {
	if l := &w.out.Layout; l.Warming == nil || l.Warming.Request != request {
		l.Warming = &Waiting{Request: request, Since: w.Now}
	}
	return w.Now.Sub(w.out.Layout.Warming.Since) < warmWithin
}

// cold reports whether a standby is still filling its cache. One whose cache manager does not work is
// not waited for.
func (k *known) cold(m *Placed) bool {
	c := k.report(m).Cache
	return slices.Contains(k.out.Layout.Warm, m.Name) && c != nil && c.Why == "" && c.Percent < warmEnough
}
