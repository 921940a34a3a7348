package etcd

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Kind is a kind of deed that keeps etcd's database small.
type Kind string

// The kinds of deeds.
const (
	// Nothing: all is well, or no deed helps.
	Nothing Kind = ""
	// Compact forgets the history before a revision.
	Compact Kind = "compact"
	// Defrag gives back to the disk what a member does not use. The member does not answer
	// meanwhile.
	Defrag Kind = "defrag"
	// Handover moves the leadership of raft to another member, so that this one may be
	// defragmented.
	Handover Kind = "handover"
	// Disarm ends the alarms that stop all writes.
	Disarm Kind = "disarm"
)

// Deed is the next thing to do.
type Deed struct {
	Kind     Kind
	Member   Condition // of Defrag; to whom, of Handover
	Revision int64     // of Compact
	Why      string
}

func (d Deed) String() string {
	switch d.Kind {
	case Compact:
		return fmt.Sprintf("compact the history before revision %d: %s", d.Revision, d.Why)
	case Defrag:
		return fmt.Sprintf("defragment %s: %s", d.Member.Name, d.Why)
	case Handover:
		return fmt.Sprintf("move etcd's leadership to %s: %s", d.Member.Name, d.Why)
	case Disarm:
		return "disarm the alarm: " + d.Why
	case Nothing:
	}
	return "nothing to do"
}

// id is the same for two deeds if the second one changes nothing more.
func (d Deed) id() string { return string(d.Kind) + " " + d.Member.Name }

const (
	// compactAgain is the pause between compactions that are urgent.
	compactAgain = time.Second
	// defragAgain is how long a member is left alone after it was defragmented.
	defragAgain = 5 * time.Minute
	// aloneLimit is how many bytes a member that is alone may hold if it is to be defragmented by
	// itself while nothing is wrong. A defragmentation copies about 100 MB/s, and nobody is
	// answered meanwhile.
	aloneLimit = 256 << 20
	// leastWaste is the least that a defragmentation must gain, in bytes.
	leastWaste = 1 << 20
)

// Look is what decides the next deed.
type Look struct {
	Now      time.Time
	Own      uint64
	Members  []Condition
	Revision int64 // the newest
	// Old is a revision that is historyKept old, or 0 if none is known. Gates and slow watchers may
	// still ask for what came after it.
	Old int64
	// Compacted is the revision of the last compaction, CompactedAt its time, and Left how many
	// bytes were in use a moment afterwards.
	Compacted   int64
	CompactedAt time.Time
	Left        int64
	Defragged   map[uint64]time.Time
	// Busy says that a failover is under way.
	Busy bool
	// Asked is which revision was the newest when a person asked for all that helps, however little it
	// gains; 0: nobody did.
	Asked int64
}

// Next returns the next deed. It is pure.
func (l Look) Next() Deed {
	if d := l.disarm(); d.Kind != Nothing {
		return d
	}
	if d := l.compact(); d.Kind != Nothing {
		return d
	}
	if l.Busy && !l.urgent() {
		return Deed{}
	}
	return l.defrag()
}

// Plan returns all deeds that are to be done, in their order. What a compaction frees is known only
// afterwards, so the plan defragments all members that may gain by it.
func (l Look) Plan() []Deed {
	var all []Deed
	seen := map[string]bool{}
	for {
		d := l.Next()
		if d.Kind == Nothing || seen[d.id()] {
			return all
		}
		seen[d.id()] = true
		all = append(all, d)
		l = l.after(d)
	}
}

// after returns what a look would be after a deed, at best.
func (l Look) after(d Deed) Look {
	l.Members, l.Defragged = slices.Clone(l.Members), maps.Clone(l.Defragged)
	if d.Kind == Defrag {
		if l.Defragged == nil {
			l.Defragged = map[uint64]time.Time{}
		}
		l.Defragged[d.Member.ID] = l.Now
	}
	for i := range l.Members {
		c := &l.Members[i]
		switch d.Kind {
		case Compact:
			c.InUse = 0
		case Defrag:
			if c.ID == d.Member.ID {
				c.Size = c.InUse
			}
		case Handover:
			c.Leader = c.ID == d.Member.ID
		case Disarm:
			c.Full = false
		case Nothing:
		}
	}
	if d.Kind == Compact {
		l.Compacted, l.CompactedAt = d.Revision, l.Now
	}
	return l
}

func (l Look) full() bool {
	return slices.ContainsFunc(l.Members, func(c Condition) bool { return c.Full })
}

// urgent reports whether etcd refuses writes, or the API refuses to add anything.
func (l Look) urgent() bool {
	return l.full() || slices.ContainsFunc(l.Members, Condition.Scarce)
}

// disarm ends the alarms once all members have some room again.
func (l Look) disarm() Deed {
	if !l.full() {
		return Deed{}
	}
	for _, c := range l.Members {
		if c.Err == nil && c.Quota > 0 && c.Size > c.Quota-c.Quota/8 {
			return Deed{}
		}
	}
	return Deed{Kind: Disarm, Why: "there is room again"}
}

// compact compacts by size. etcd's own compaction by time begins only ten minutes after the start
// of a member. While the alarm stands, and if a person asks, no history is kept. Then watchers read
// everything again. A gate whose member had just begun to be promoted refuses if it cannot know who
// led (package gate).
func (l Look) compact() Deed {
	if l.Asked > 0 {
		// Once, and further than what was there when it was asked for: what was deleted a moment ago is
		// history too. A compaction by itself a moment ago may have kept that.
		if l.Compacted < l.Asked {
			return Deed{Kind: Compact, Revision: l.Revision, Why: fmt.Sprintf("%s in use", Bytes(l.self().InUse))}
		}
		return Deed{}
	}
	if l.urgent() {
		revision := l.Old
		if l.full() {
			revision = l.Revision
		}
		if revision > l.Compacted && l.Now.Sub(l.CompactedAt) >= compactAgain {
			return Deed{Kind: Compact, Revision: revision, Why: fmt.Sprintf("%s in use", Bytes(l.self().InUse))}
		}
		return Deed{}
	}
	self := l.self()
	if self.Quota > 0 && self.InUse >= self.Quota/16 && self.InUse-l.Left >= self.Quota/32 && l.Old > l.Compacted {
		return Deed{Kind: Compact, Revision: l.Old, Why: fmt.Sprintf("%s in use, and growing", Bytes(self.InUse))}
	}
	return Deed{}
}

func (l Look) self() Condition {
	if at := slices.IndexFunc(l.Members, func(c Condition) bool { return c.ID == l.Own }); at >= 0 {
		return l.Members[at]
	}
	return Condition{}
}

// defrag takes one member after the other. The leader comes last, once another member leads.
func (l Look) defrag() Deed {
	for _, c := range l.Members {
		if !c.Leader && l.pays(c) && l.spared(c) {
			return Deed{Kind: Defrag, Member: c, Why: waste(c)}
		}
	}
	leader := slices.IndexFunc(l.Members, func(c Condition) bool { return c.Leader })
	if leader < 0 || !l.pays(l.Members[leader]) {
		return Deed{}
	}
	c := l.Members[leader]
	if len(l.voters()) == 1 {
		if c.InUse > aloneLimit && !l.urgent() && l.Asked == 0 {
			return Deed{}
		}
		return Deed{Kind: Defrag, Member: c, Why: waste(c)}
	}
	for _, other := range l.voters() {
		if other.ID != c.ID && other.Err == nil && l.spared(c) {
			return Deed{Kind: Handover, Member: other, Why: c.Name + " is to be defragmented, " + waste(c)}
		}
	}
	if l.full() {
		return Deed{Kind: Defrag, Member: c, Why: waste(c)} // nobody else is there, and nothing works as it is
	}
	return Deed{}
}

func waste(c Condition) string {
	if c.InUse == 0 {
		return "what the compaction frees of " + Bytes(c.Size)
	}
	return fmt.Sprintf("%s of %s are in use", Bytes(c.InUse), Bytes(c.Size))
}

// pays reports whether a member would give much back.
func (l Look) pays(c Condition) bool {
	free, last := c.Size-c.InUse, l.Defragged[c.ID]
	switch {
	case c.Err != nil:
		return false
	case l.full() && last.Before(l.CompactedAt):
		// What a compaction freed is counted only with the next write, and that is not taken.
		return true
	case free < leastWaste:
		return false
	case l.Asked > 0:
		return true
	case l.full():
		return free >= c.Size/8
	case l.urgent() && free >= c.Size/2:
		return true
	case l.Now.Sub(last) < defragAgain:
		return false
	case l.urgent():
		return free >= c.Size/8
	}
	return c.Size >= c.Quota/4 && free >= c.Size/2
}

// spared reports whether the other members have a majority while this one does not answer. While no
// writes are taken there is nothing to lose.
func (l Look) spared(c Condition) bool {
	if l.full() || c.Learner {
		return true
	}
	voters, answer := l.voters(), 0
	for _, other := range voters {
		if other.ID != c.ID && other.Err == nil {
			answer++
		}
	}
	return answer > len(voters)/2
}

func (l Look) voters() []Condition {
	return slices.DeleteFunc(slices.Clone(l.Members), func(c Condition) bool { return c.Learner })
}

// Bytes returns a size as people read it.
func Bytes(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
