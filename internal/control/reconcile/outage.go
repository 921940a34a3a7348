package reconcile

import (
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/view"
)

const (
	// downFor is how long an instance must be without a primary that serves before an event tells
	// that it is being recovered. A failover takes less.
	downFor = 2 * time.Second
	// apartFor is how long a replica must be without its source before an event tells of it. A
	// restart of the source takes less.
	apartFor = 10 * time.Second
	// unprovedFor is how long a promotion must wait for a proof before an event tells of it. In a
	// failover that goes well the cuts come within a second.
	unprovedFor = 10 * time.Second
)

// Spell is something that lasts, and says whether an event told of it.
type Spell struct {
	Since time.Time `json:"since,omitzero"`
	Told  bool      `json:"told,omitempty"`
}

// observe records what is seen now: whether the spell goes on, and whether it is over. Both are
// false while nothing is known. began is true once, when the spell has lasted for least. ended is
// true once, when a spell is over that was told of.
func (s *Spell) observe(now time.Time, goesOn, over bool, least time.Duration) (began, ended bool) {
	switch {
	case goesOn && s.Since.IsZero():
		s.Since = now.UTC()
	case goesOn && !s.Told && now.Sub(s.Since) >= least:
		s.Told = true
		return true, false
	case over && !s.Since.IsZero():
		ended = s.Told
		*s = Spell{}
		return false, ended
	}
	return false, false
}

// outageNotes returns events which tell that an instance serves nobody although it should, and that
// it does again; and that a read replica lost its source, and found it again. While the planner
// works on the database, none of this is news. RDS has no such events of clusters.
func (w *world) outageNotes(d *database, out plan.Output, n *Notice) []note {
	done := out.Layout
	planned := d.layout.Value.Acts() || done.Acts() || d.Want.State != member.Running ||
		done.Changed < d.Want.Change || done.Rebooted < d.Want.Reboot || done.FailedOver < d.Want.Failover
	if d.Cluster != nil || !d.layout.Value.Created {
		return nil
	}
	report, serves := w.serving(d)
	var notes []note
	began, ended := n.Down.observe(w.now, !serves && !planned, serves, downFor)
	if began {
		notes = append(notes, note{d.source(), recoveryNumbers(d)[0], nil})
	}
	if ended {
		notes = append(notes, note{d.source(), recoveryNumbers(d)[1], nil})
	}
	if d.Want.Upstream == nil {
		n.Apart = Spell{}
		return notes
	}
	apart := serves && report.Problem == member.NotReplicating && !planned
	began, ended = n.Apart.observe(w.now, apart, serves && report.Streaming, apartFor)
	if began {
		notes = append(notes, note{d.source(), "0045", nil})
	}
	if ended {
		notes = append(notes, note{d.source(), "0046", nil})
	}
	return notes
}

// proofNotes returns an event which tells that nobody is promoted, because that might lose
// acknowledged writes. The failover, or the end of the recovery, tells that it is over.
func (w *world) proofNotes(d *database, n *Notice) []note {
	why, _, _ := view.Unproved(w.cache, d.Want.ID)
	if began, _ := n.Unproved.observe(w.now, why != "", why == "", unprovedFor); began {
		return []note{{d.source(), "H012", []any{why}}}
	}
	return nil
}

// recoveryNumbers returns the numbers of the events for the beginning and the end of a recovery.
func recoveryNumbers(d *database) [2]string {
	if len(d.Want.Seats) > 1 {
		return [2]string{"0052", "0053"}
	}
	return [2]string{"0020", "0021"}
}

// serving returns what the leader's agent reports, and whether clients are served.
func (w *world) serving(d *database) (member.Report, bool) {
	leader, exists := find(d.layout.Value, view.Leader(w.cache, d.Want.ID))
	if !exists || !w.alive(leader.Host) {
		return member.Report{}, false
	}
	r, err := state.Load[member.Report](w.cache, state.Report(leader.Host, member.ID(d.Want.ID, leader.Name)))
	return r.Value, err == nil && r.Value.Ready && (!r.Value.InRecovery || d.Want.Upstream != nil)
}
