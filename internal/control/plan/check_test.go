package plan

import (
	"encoding/json"
	"slices"

	"howdah/internal/model/member"
)

// decide asks the planner, and checks what must hold of every decision.
func (s *sim) decide(in Input) Output {
	s.decisions++
	var out Output
	if s.decisions%s.checkEvery == 0 {
		out = s.twice(in)
	} else {
		out = Next(in)
	}
	s.checkLeaving(in, out)
	s.checkRestore(in, out)
	s.checkCount(in, out)
	s.checkPlaces(in, out)
	s.checkNames(in, out)
	for _, t := range out.Tasks {
		s.checkAlone(in, out, t)
		if t.Kind == member.Handover {
			s.checkHandover(in, out)
		}
	}
	return out
}

// twice: the same input gives the same output, and is not changed.
func (s *sim) twice(in Input) Output {
	before := text(in)
	out := Next(in)
	if text(in) != before {
		s.fail("the planner changed its input")
	}
	var same Input
	if err := json.Unmarshal([]byte(before), &same); err != nil {
		s.fail("copy input: %v", err)
	}
	if again := Next(same); text(again) != text(out) {
		s.fail("the planner is not deterministic:\n%s\n%s", text(out), text(again))
	}
	return out
}

// checkLeaving: only what others have is deleted, and never the primary.
func (s *sim) checkLeaving(in Input, out Output) {
	if in.Want.State == member.Absent {
		return
	}
	if out.Layout.restoring(in.Want) {
		return // nothing was ever stored
	}
	w := begin(in)
	decided := in
	decided.Layout = out.Layout
	after := begin(decided)
	for _, m := range out.Layout.Members {
		old := find(in.Layout, m.Name)
		if !m.Leaving || (old != nil && old.Leaving) {
			continue
		}
		if m.Name == in.Leader {
			s.fail("%s is removed while it leads", m.Name)
		}
		if _, known := w.host(m.Host); m.Going == Replaced && known && !after.replaced(&m) {
			s.fail("%s is removed before others do its work", m.Name)
		}
		if w.primary() == nil {
			s.fail("%s is removed without a primary", m.Name)
		}
		if w.alive(&m) && s.alone(after) {
			s.fail("%s is removed before another one is in sync", m.Name)
		}
		if h, known := w.host(m.Host); known && !h.Alive && m.Going == Replaced {
			s.fail("%s is removed behind the back of its lost host", m.Name)
		}
	}
	for _, old := range in.Layout.Members {
		if find(out.Layout, old.Name) == nil && !old.Leaving {
			s.fail("%s was forgotten without being deleted", old.Name)
		}
	}
}

// checkRestore: while a database is restored it has one member, and that one restores it. A restore
// ends for good with the first data.
func (s *sim) checkRestore(in Input, out Output) {
	if in.Want.Restore == nil || in.Want.State == member.Absent {
		return
	}
	restoring := out.Layout.restoring(in.Want)
	if s.initialized && restoring {
		s.fail("it is restored again, although there are data")
	}
	if in.Layout.Restored && !out.Layout.Restored {
		s.fail("it forgot that it was restored")
	}
	staying := 0
	for _, m := range out.Layout.Members {
		a := Assign(in.Want, out.Layout, m, 0)
		if !m.Leaving {
			staying++
		}
		if !a.Inherits || (a.Restore != nil) != (restoring && !m.Leaving) {
			s.fail("%s: restores %v, inherits %v", m.Name, a.Restore != nil, a.Inherits)
		}
	}
	if restoring && staying > 1 {
		s.fail("%d members are there before the data", staying)
	}
}

// alone: none is in sync, although one that shall be replicates, and Patroni went by
// what was decided before.
func (s *sim) alone(w *work) bool {
	up := slices.ContainsFunc(w.members(), func(m *Placed) bool {
		return m.Name != w.Leader && m.Going == Staying && w.confirms(m) && w.ready(m)
	})
	return up && !slices.ContainsFunc(w.members(), w.inSync)
}

// checkCount: nobody leaves the count of those that confirm commits while the sync
// key names it.
func (s *sim) checkCount(in Input, out Output) {
	if in.Want.State != member.Running || in.Want.Upstream != nil {
		return
	}
	for _, old := range in.Layout.Members {
		m := find(out.Layout, old.Name)
		counted := m != nil && m.Votes && !m.Leaving
		if old.Votes && !old.Leaving && !counted && slices.Contains(in.Sync.Standbys, old.Name) {
			s.fail("%s does not count any more, and %v are in sync", old.Name, in.Sync.Standbys)
		}
	}
}

func find(l Layout, name string) *Placed {
	for i := range l.Members {
		if l.Members[i].Name == name {
			return &l.Members[i]
		}
	}
	return nil
}

// checkPlaces: names and ports are never used twice, zones only once.
func (s *sim) checkPlaces(in Input, out Output) {
	zones := map[string]string{}
	for _, m := range out.Layout.Members {
		if find(in.Layout, m.Name) == nil && s.names[m.Name] {
			s.fail("the name %s is used again", m.Name)
		}
		for key, a := range s.assigned {
			if host, id := splitKey(key); host == m.Host && id != member.ID(in.Want.ID, m.Name) && overlap(a, m) {
				s.fail("%s on %s has a port of %s", m.Name, m.Host, id)
			}
		}
		if in.Want.SpreadZones && m.Going == Staying && !m.Leaving {
			if other, taken := zones[m.Zone]; taken {
				s.fail("%s and %s are both in zone %s", other, m.Name, m.Zone)
			}
			zones[m.Zone] = m.Name
		}
	}
	for i, a := range out.Layout.Members {
		for _, b := range out.Layout.Members[:i] {
			if a.Name == b.Name || a.Host == b.Host && overlap(member.Assignment{Port: b.Port, RESTPort: b.RESTPort}, a) {
				s.fail("%s and %s share a name or a port", a.Name, b.Name)
			}
		}
	}
}

// checkNames: a name of its own is kept for good, and given later only to who follows
// another database, to one at a time of those who serve.
func (s *sim) checkNames(in Input, out Output) {
	given, w := 0, begin(in)
	for _, old := range in.Layout.Members {
		m := find(out.Layout, old.Name)
		switch {
		case m == nil || m.OwnName == old.OwnName:
		case !m.OwnName:
			s.fail("%s lost its name", m.Name)
		case in.Want.Upstream == nil || !in.OwnNames:
			s.fail("%s was renamed", m.Name)
		case w.ready(&old):
			given++
		}
	}
	if given > 1 {
		s.fail("%d members are renamed at once", given)
	}
}

func overlap(a member.Assignment, m Placed) bool {
	return slices.Contains([]int{a.Port, a.RESTPort}, m.Port) || slices.Contains([]int{a.Port, a.RESTPort}, m.RESTPort)
}

// checkAlone: nothing is asked for while the last task is under way on a host that
// can tell how it ends.
func (s *sim) checkAlone(in Input, out Output, t member.Task) {
	last := in.Layout.Asked
	if last == nil || last.ID() == t.ID {
		return
	}
	if asked := find(out.Layout, last.Member); asked == nil || asked.Leaving {
		return
	}
	r := in.Results[last.ID()]
	if !r.Done && !r.Failed && begin(in).answers(last.Member) && in.Now.Sub(last.At) <= TaskDeadline+taskGrace {
		s.fail("%s is asked for while %s is under way", t.ID, last.ID())
	}
}

// checkHandover: somebody is ready to take over with everything.
func (s *sim) checkHandover(in Input, out Output) {
	w := begin(in)
	for _, m := range w.members() {
		if m.Name != in.Leader && w.ready(m) && w.inSync(m) && !seatFor(in.Want, *m).NoFailover && !w.diskFull(m) {
			return
		}
	}
	s.fail("a handover was asked for without a standby in sync")
}

// checkDeletion: data are deleted only if others have every acknowledged write.
func (s *sim) checkDeletion(gone *simMember, id string) {
	if s.want.State == member.Absent || !gone.data || s.want.Upstream != nil {
		return
	}
	for _, m := range s.all() {
		if m != gone && m.data && m.lsn >= s.acked && m.have.Want != member.Absent {
			return
		}
	}
	s.fail("the data of %s were the last with all acknowledged writes", id)
}
