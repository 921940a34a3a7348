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
	leader, l := w.leader(), &w.out.Layout
	if leader == nil && w.Want.Warm {
		return
	}
	if l.Warm, l.Cold = w.pair(leader); len(l.Warm) > 0 {
		l.Cold = w.unable()
	}
}

// unable returns why the pair's caches cannot become alike, as its standby says, or "".
func (w *work) unable() string {
	for _, m := range w.members() {
		if c := w.report(m).Cache; slices.Contains(w.out.Layout.Warm, m.Name) && c != nil && c.Never {
			return c.Why
		}
	}
	return ""
}

// pair returns the primary and the standby whose caches are to be alike. If there is no such pair it
// returns why, or "" where that is only a matter of time. The rules are Aurora's: both have promotion
// tier 0 and one class, and no other reader has tier 0. Members of an instance are alike by
// themselves.
func (k *known) pair(leader *Placed) (names []string, why string) {
	if !k.Want.Warm || len(k.Want.Seats) == 0 {
		return nil, ""
	}
	if k.Want.Upstream != nil {
		return nil, "what the database follows is no member of it"
	}
	if old := k.kept(leader); old != nil {
		return old, ""
	}
	own, seated := k.seatOf(leader)
	if !seated || own.Tier != 0 || own.NoFailover {
		return nil, "the writer has not promotion tier 0"
	}
	seats := k.readers(leader)
	switch instance := own.Key == ""; {
	case len(seats) == 0 && instance:
		return nil, "the instance has no standby"
	case len(seats) == 0:
		return nil, "there is no reader of promotion tier 0"
	case len(seats) > 1:
		return nil, fmt.Sprintf("there are %d readers of promotion tier 0, and there must be one", len(seats))
	case seats[0].Limits.CPUs != own.Limits.CPUs || seats[0].Limits.MemoryBytes != own.Limits.MemoryBytes:
		return nil, "the reader of promotion tier 0 has another class than the writer"
	}
	for _, m := range k.members() {
		if m != leader && m.Seat == seats[0].Key && m.Going == Staying {
			names = []string{leader.Name, m.Name}
			slices.Sort(names)
			return names, ""
		}
	}
	return nil, "" // it is not placed yet
}

// readers returns the seats of promotion tier 0 beside that of the primary.
func (k *known) readers(leader *Placed) (seats []Seat) {
	own := slices.IndexFunc(k.Want.Seats, func(s Seat) bool { return s.Key == leader.Seat })
	for i, s := range k.Want.Seats {
		if i != own && s.Tier == 0 && !s.NoFailover {
			seats = append(seats, s)
		}
	}
	return seats
}

// kept returns the pair as it was, while one of it is to leave and the other serves: whoever takes over
// shall be the one whose cache is warm. It returns nil otherwise.
func (k *known) kept(leader *Placed) []string {
	old := k.out.Layout.Warm
	if len(old) != 2 || !slices.Contains(old, leader.Name) {
		return nil
	}
	for _, m := range k.members() {
		leaves := leader.Going != Staying || m.Going == Replaced
		if m != leader && slices.Contains(old, m.Name) && leaves && k.ready(m) {
			return old
		}
	}
	return nil
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
	waited := w.Now.Sub(w.out.Layout.Warming.Since)
	return waited >= 0 && waited < warmWithin // another control plane may have had another time
}

// cold reports whether a standby of the pair has yet to fill its cache, as far as is known. One whose
// cache cannot become warm is not.
func (k *known) cold(m *Placed) bool {
	if !slices.Contains(k.out.Layout.Warm, m.Name) {
		return false
	}
	c := k.report(m).Cache
	return c == nil || !c.Never && (!c.Known || c.Percent < warmEnough)
}
