package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/view"
)

// aloneFor is how long a primary may be without a standby in sync before an event tells of it.
// Every failover, and every restart of a standby, leaves it alone for some seconds.
const aloneFor = 10 * time.Second

// Notice has the lasting facts of a database that events have told of, so that each is told once,
// also over a restart of the control plane. It is written in the transaction of its events.
type Notice struct {
	// Alone is since when no standby is in sync. It is zero while one is.
	Alone time.Time `json:"alone,omitzero"`
	// AloneTold says that there was an event about it.
	AloneTold bool `json:"alone_told,omitempty"`
	// Told are the problems that were told and are not known to be over, each with its subject: see
	// problemKey.
	Told []string `json:"told,omitempty"`
	// Down is the time in which an instance serves nobody. Apart is the time in which a replica is
	// without its source.
	Down  Spell `json:"down,omitzero"`
	Apart Spell `json:"apart,omitzero"`
	// Unproved is the time in which nobody takes a lost primary's place, because it is not certain
	// that nothing would be lost.
	Unproved Spell `json:"unproved,omitzero"`
	// Slots are users' logical slots of the member that writes.
	Slots Slots `json:"slots,omitzero"`
}

// Slots says which logical slots users had last on the member that leads. Its report does not
// outlive it: it says something else as soon as the member is a standby.
type Slots struct {
	Member string   `json:"member,omitempty"`
	Names  []string `json:"names,omitempty"`
}

// waits reports whether something lasts that an event may have to tell of.
func (n Notice) waits() bool {
	return !n.Alone.IsZero() || !n.Down.Since.IsZero() || !n.Apart.Since.IsZero() || !n.Unproved.Since.IsZero()
}

// notices returns the events of what began or ended, with the new Notice.
func (w *world) notices(d *database, out plan.Output) ([]state.Op, error) {
	if d.Want.State == member.Absent {
		return nil, nil
	}
	key := state.Notice(d.Want.ID)
	last, _ := state.Load[Notice](w.cache, key) // one that does not decode is begun anew
	_, revision, _ := w.cache.Raw(key)
	next := last.Value
	notes := slices.Concat(w.aloneNotes(d, out, &next), w.problemNotes(d, out.Layout, &next), extensionNotes(d, out, last.Value, &next),
		w.subscriptionNotes(d, out.Layout, last.Value, &next), w.outageNotes(d, out, &next), w.proofNotes(d, &next), w.slotNotes(d, out.Layout, &next))
	if reflect.DeepEqual(next, last.Value) {
		return nil, nil
	}
	ops, err := puts(d, notes, w.now)
	return append(ops, state.Swap(key, revision, next)), err
}

// aloneNotes returns an event if the primary has been without a standby in sync, and one when that
// is over. While there is no primary, nothing is known.
func (w *world) aloneNotes(d *database, out plan.Output, n *Notice) []note {
	switch {
	case out.Exposed && n.Alone.IsZero():
		n.Alone = w.now.UTC()
	case out.Exposed && !n.AloneTold && w.now.Sub(n.Alone) >= aloneFor:
		n.AloneTold = true
		text := "writes go on without one"
		if d.Want.WaitForStandby {
			text = "writes wait until one is"
		}
		return []note{{d.source(), "H001", []any{text}}}
	case out.Exposed || n.Alone.IsZero():
	case w.standbyInSync(d):
		told := n.AloneTold
		n.Alone, n.AloneTold = time.Time{}, false
		if told {
			return []note{{d.source(), "H002", nil}}
		}
	case d.Want.State != member.Running || len(d.Want.Seats) < 2:
		// No standby is wanted any more.
		n.Alone, n.AloneTold = time.Time{}, false
	}
	return nil
}

func (w *world) standbyInSync(d *database) bool {
	s := view.Sync(w.cache, d.Want.ID)
	return len(s.Standbys) > 0 && s.Leader != "" && s.Leader == view.Leader(w.cache, d.Want.ID)
}

// slotNotes returns an event of the slots that the member which led last had, and the one that leads
// now has not.
func (w *world) slotNotes(d *database, layout plan.Layout, n *Notice) []note {
	leader := view.Leader(w.cache, d.Want.ID)
	at := slices.IndexFunc(layout.Members, func(m plan.Placed) bool { return m.Name == leader })
	if leader == "" || at < 0 {
		return nil
	}
	m := layout.Members[at]
	r, err := state.Load[member.Report](w.cache, state.Report(m.Host, member.ID(d.Want.ID, m.Name)))
	if err != nil || !r.Value.Ready || r.Value.InRecovery {
		return nil
	}
	last, names := n.Slots, strings.Fields(r.Value.Slots)
	if len(last.Names) == 0 && len(names) == 0 {
		n.Slots = Slots{}
		return nil
	}
	n.Slots = Slots{Member: m.Name, Names: names}
	if last.Member == m.Name {
		return nil
	}
	lost := slices.DeleteFunc(slices.Clone(last.Names), func(name string) bool { return slices.Contains(names, name) })
	if len(lost) == 0 {
		return nil
	}
	src := d.source()
	if seat, ok := d.seatSource(m.Seat); ok && d.Cluster != nil {
		src = seat
	}
	return []note{{src, "H022", []any{strings.Join(lost, ", ")}}}
}

// told has the problems that events tell of, the most urgent first. An agent reports only the most
// urgent problem of a member.
var told = []member.Problem{member.RestoreFails, member.Hangs, member.DiskFull, member.SlotLost, member.StorageFull, member.StorageLow}

// urgency returns the place of a problem in that order. A problem that is not in the order hides
// all others, except for those that an agent only sees if there is no other problem.
func urgency(p member.Problem) int {
	if p == member.None || p == member.NotReplicating || p == member.NoModule {
		return len(told)
	}
	return slices.Index(told, p)
}

// problemKey names a problem with its subject. Storage belongs to a seat, as its leader reports it.
// All else belongs to a member.
func problemKey(p member.Problem, m plan.Placed) string {
	if isStorage(p) {
		return string(p) + "/" + m.Seat
	}
	return string(p) + "/" + m.Name
}

func isStorage(p member.Problem) bool { return p == member.StorageFull || p == member.StorageLow }

// problemNotes returns the events of problems that began, and forgets those that are over.
func (w *world) problemNotes(d *database, layout plan.Layout, n *Notice) []note {
	var notes []note
	var still []string
	leader := view.Leader(w.cache, d.Want.ID)
	for _, m := range layout.Members {
		r, err := state.Load[member.Report](w.cache, state.Report(m.Host, member.ID(d.Want.ID, m.Name)))
		known := err == nil && w.alive(m.Host) && !m.Leaving
		for _, p := range told {
			key := problemKey(p, m)
			before := slices.Contains(n.Told, key)
			switch {
			case isStorage(p) && m.Name != leader:
				// The leader's word counts. While there is no leader, the last word counts.
				if before && leader == "" {
					still = append(still, key)
				}
			case known && r.Value.Problem == p && !before:
				if news, ok := w.problemNote(d, m, r.Value); ok {
					notes = append(notes, news)
				}
				still = append(still, key)
			case before && (!known || urgency(r.Value.Problem) <= urgency(p)):
				still = append(still, key)
			}
		}
	}
	slices.Sort(still)
	n.Told = slices.Compact(still)
	return notes
}

func (w *world) problemNote(d *database, m plan.Placed, r member.Report) (note, bool) {
	src := d.source()
	if d.Cluster != nil {
		seat, ok := d.seatSource(m.Seat)
		if !ok {
			return note{}, false
		}
		src = seat
	}
	switch r.Problem {
	case member.RestoreFails:
		return note{src, "0031", []any{plan.CannotRestore}}, true
	case member.Hangs:
		return note{src, "H011", []any{m.Host, r.Detail}}, true
	case member.DiskFull:
		return note{src, "H007", []any{m.Host}}, true
	case member.SlotLost:
		return note{src, "H003", []any{strings.TrimSpace(r.Detail)}}, true
	case member.StorageFull:
		return note{src, "0007", nil}, true
	default:
		limit := storageOf(d.Want, m)
		free := max(limit-r.StorageBytes, 0)
		percent := fmt.Sprintf("%.2f%%", 100*float64(free)/float64(max(limit, 1)))
		return note{src, "0089", []any{src.Name, percent, gigabytes(limit), gigabytes(free)}}, true
	}
}

func gigabytes(bytes int64) string { return fmt.Sprintf("%.2f GB", float64(bytes)/(1<<30)) }

func storageOf(want plan.Database, m plan.Placed) int64 {
	for _, s := range want.Seats {
		if s.Key == m.Seat {
			return s.Limits.StorageBytes
		}
	}
	return 0
}

// extensionNotes returns an event when hosts of the database begin to differ in extensions, or in
// their versions, and forgets what is over. There is one for all hosts whose packages are upgraded
// one after the other.
func extensionNotes(d *database, out plan.Output, last Notice, n *Notice) []note {
	var notes []note
	for _, kind := range []plan.Kind{plan.LacksExtensions, plan.OlderExtensions} {
		at := slices.IndexFunc(out.Problems, func(p plan.Problem) bool { return p.Kind == kind })
		if at < 0 {
			continue
		}
		if n.Told = append(n.Told, string(kind)); !slices.Contains(last.Told, string(kind)) {
			notes = append(notes, note{d.source(), "H023", []any{out.Problems[at].Text}})
		}
	}
	slices.Sort(n.Told)
	return notes
}

// disabledKey notes that an event told of subscriptions that were disabled.
const disabledKey = "disabled-subscriptions"

// subscriptionNotes returns an event if a primary has disabled subscriptions of its former source. Its
// data keep that, and so does the notice: it is told once.
func (w *world) subscriptionNotes(d *database, layout plan.Layout, last Notice, n *Notice) []note {
	before := slices.Contains(last.Told, disabledKey)
	leader, disabled := view.Leader(w.cache, d.Want.ID), 0
	for _, m := range layout.Members {
		r, err := state.Load[member.Report](w.cache, state.Report(m.Host, member.ID(d.Want.ID, m.Name)))
		if err == nil && m.Name == leader && r.Value.Ready {
			disabled = r.Value.DisabledSubscriptions
		}
	}
	if before || disabled > 0 {
		n.Told = append(n.Told, disabledKey)
		slices.Sort(n.Told)
	}
	if before || disabled == 0 {
		return nil
	}
	return []note{{d.source(), "H024", []any{strconv.Itoa(disabled)}}}
}
