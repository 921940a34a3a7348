package edge

import (
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// serving reports whether clients may read from a replica: its agent logged in a moment ago, it
// receives WAL, its Patroni vouches for it, and its host is not lost.
func (e *Edge) serving(r route.Route, m route.Member) bool {
	report, err := state.Load[member.Report](e.cache, state.Report(m.Host, member.ID(r.Database, m.Name)))
	if err != nil || !report.Value.Ready || !report.Value.Streaming {
		return false
	}
	if live, err := state.Load[member.Liveness](e.cache, state.Live(m.Host)); err != nil || !live.Value.Alive {
		return false
	}
	s, ok := patroni.FindMember(e.cache.Raw, r.Database, m.Name)
	return ok && s.State == "running"
}
