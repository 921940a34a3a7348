package plan

import (
	"reflect"
	"slices"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// patroni is what Patroni does on every member in a round.
func (s *sim) patroni() {
	if m := s.named(s.leader); m == nil || !m.running {
		// The old leader's lease ends, or its agent revoked it.
		elected := s.leader == ""
		s.leader = ""
		if elected {
			s.elect()
		}
	} else {
		m.promoted = true
	}
	s.hear()
	s.replicate()
	s.updateSync()
	s.write()
	for _, m := range s.all() {
		if m.running {
			m.applied, m.tags = m.have.Generation, m.have
		}
		m.restarting = max(0, m.restarting-1)
	}
}

// hear has the leader's Patroni take a new configuration over, now or late. The end
// of following is never late: Patroni claims the sync key before it promotes.
func (s *sim) hear() {
	switch {
	case reflect.DeepEqual(s.inForce, s.config):
	case s.late > 0 && s.initialized && s.inForce.Upstream == nil:
		s.late--
	default:
		s.inForce, s.late = s.config, s.lag
	}
}

func (s *sim) named(name string) *simMember {
	for _, m := range s.all() {
		if m.have.Name == name && !m.gone {
			return m
		}
	}
	return nil
}

// serving: there is a primary that takes writes.
func (s *sim) serving() bool {
	m := s.named(s.leader)
	return m != nil && m.running && m.promoted
}

// elect makes a leader where there is none: the first member of a new database,
// or the best of those that may be.
func (s *sim) elect() {
	var best *simMember
	for _, m := range s.all() {
		if !m.running || !s.eligible(m) {
			continue
		}
		if best == nil || s.better(m, best) {
			best = m
		}
	}
	if best == nil {
		return
	}
	if !s.initialized {
		if s.want.Restore != nil && best.have.Restore == nil {
			s.fail("%s begins an empty database in place of the one that is restored", best.have.Name)
		}
		s.initialized, best.data, best.promoted = true, true, true
	}
	s.leader = best.have.Name
	best.applied, best.tags = best.have.Generation, best.have
	if best.lsn < s.acked && s.want.State != member.Absent {
		s.fail("%s was elected without acknowledged writes: it has %d of %d", s.leader, best.lsn, s.acked)
	}
	if s.sync.Leader != "" {
		s.sync, s.confirming = patroni.Sync{Leader: s.leader}, nil
	}
}

// eligible is Patroni's rule. In quorum mode votes decide, also about one that the
// sync key does not name; in priority mode each that it names wins alone. The mode
// is what the config key says now, whatever the last leader has heard of it.
func (s *sim) eligible(m *simMember) bool {
	quorum := s.config.Sync == patroni.SyncQuorum
	named := slices.Contains(s.sync.Standbys, m.have.Name)
	switch {
	case !s.initialized:
		return !m.have.NoFailover
	case !m.data:
		return false
	case s.sync.Leader == "":
		return !m.have.NoFailover
	case m.have.Name == s.sync.Leader:
		return true
	case m.have.NoFailover || !named && !quorum:
		return false
	case !quorum:
		return true
	case !named:
		return s.asked(m) > s.sync.Quorum
	default:
		return s.asked(m) >= s.sync.Quorum
	}
}

// asked is how many other voters a candidate can ask, that are not ahead of it.
func (s *sim) asked(candidate *simMember) int {
	n := 0
	for _, m := range s.all() {
		if m != candidate && m.running && m.data && slices.Contains(s.sync.Standbys, m.have.Name) && m.lsn <= candidate.lsn {
			n++
		}
	}
	return n
}

func (s *sim) better(a, b *simMember) bool {
	switch {
	case a.lsn != b.lsn:
		return a.lsn > b.lsn
	case a.have.Boost != b.have.Boost:
		return a.have.Boost
	default:
		return a.have.Tier < b.have.Tier
	}
}

// replicate has replicas receive, and empty ones copy.
func (s *sim) replicate() {
	leader := s.named(s.leader)
	if !s.serving() {
		return
	}
	for _, m := range s.all() {
		switch {
		case m == leader || !m.running:
		case !m.data && m.copying == 0:
			m.copying = copyTime
		case !m.data:
			if m.copying--; m.copying == 0 {
				m.data, m.lsn, m.owner = true, leader.lsn, leader.owner
			}
		case slices.Contains(s.confirming, m.have.Name):
			m.lsn, m.owner = leader.lsn, leader.owner
		default:
			// One out of sync is a commit behind.
			m.lsn, m.owner = max(min(m.lsn, leader.lsn), leader.lsn-1), leader.owner
		}
	}
}

// updateSync is what the leader writes to the sync key, and tells its PostgreSQL.
// It goes by the tags that members had a moment ago.
func (s *sim) updateSync() {
	if !s.serving() {
		return
	}
	before := s.mode
	s.mode = s.inForce.Sync
	if s.mode == patroni.SyncOff || s.mode == "" {
		s.sync, s.confirming = patroni.Sync{}, nil
		return
	}
	able := s.able()
	s.sync, s.confirming = patroni.Sync{Leader: s.leader}, able
	if before == patroni.SyncQuorum && s.mode == patroni.SyncSingle {
		// Patroni believes in no standby for two seconds, until PostgreSQL says of the
		// one that it is in sync by the new rule.
		s.blank = 2
	}
	if s.blank--; s.blank >= 0 && s.mode == patroni.SyncSingle {
		return
	}
	s.sync.Standbys = able
	if s.mode == patroni.SyncQuorum {
		s.sync.Quorum = max(0, len(able)-1)
	}
	for _, name := range able { // a standby is in sync once it has everything
		s.named(name).lsn = s.named(s.leader).lsn
	}
}

// able are the standbys that may confirm commits; in priority mode the one that
// does so already is kept.
func (s *sim) able() []string {
	var able []string
	for _, m := range s.all() {
		if m.have.Name != s.leader && m.running && m.data && m.applied > 0 && !m.tags.NoFailover && !m.tags.NoSync && m.restarting == 0 {
			able = append(able, m.have.Name)
		}
	}
	if s.mode == patroni.SyncSingle && len(able) > 1 {
		kept := slices.DeleteFunc(slices.Clone(able), func(n string) bool { return !slices.Contains(s.confirming, n) })
		able = append(kept, able...)[:1]
	}
	return able
}

// write is a client that commits once in a round: acknowledged once one of the
// standbys that confirm has it. The others have it a round later.
func (s *sim) write() {
	leader := s.named(s.leader)
	if !s.serving() || leader.restarting > 0 {
		return
	}
	leader.lsn++
	leader.owner = leader.have.Owner.Serial
	var up []*simMember
	for _, name := range s.confirming {
		if m := s.named(name); m != nil && m.running {
			up = append(up, m)
		}
	}
	if len(up) > 0 {
		up[leader.lsn%len(up)].lsn = leader.lsn
	}
	// One that follows another database acknowledges nothing of its own.
	if (len(up) > 0 || len(s.confirming) == 0) && s.inForce.Upstream == nil {
		s.acked = leader.lsn
	}
}
