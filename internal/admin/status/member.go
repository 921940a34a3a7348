package status

import (
	"slices"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/control/plan"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

func (s *service) memberOut(d database.Subject, m plan.Placed, primary lsn.LSN) admin.Member {
	report := d.Reports[member.ID(d.Want.ID, m.Name)]
	out := admin.Member{
		Name: m.Name, Instance: d.SeatName(m.Seat), Host: m.Host, Zone: m.Zone,
		Address: m.Listen(), Role: d.Role(m), Sync: syncState(d, m),
		Patroni: report.Patroni, Postgres: report.Postgres, Timeline: report.Timeline, LSN: report.LSN,
		StorageBytes: report.StorageBytes, Going: string(m.Going), Problem: string(report.Problem), Detail: report.Detail,
	}
	if r := report.Restoring; r != nil && d.Alive[m.Host] {
		out.Restoring = &admin.Restoring{Phase: r.Phase, Done: r.Done, Of: r.Of, Began: r.Began}
	}
	if c := report.Cache; c != nil && report.Ready && d.Alive[m.Host] {
		out.Cache = &admin.Cache{State: c.State, Why: c.Why, Percent: c.Percent, Known: c.Known, Outside: c.State == member.CacheOutside}
	}
	out.State = memberState(d, m, report)
	out.Ready = out.State == stateReady
	at := s.position(d.Want.ID, m.Name)
	if at > 0 {
		out.LSN = at
	}
	if out.Role == admin.RoleStandby && report.Ready {
		seconds := report.LagSeconds
		out.LagSeconds = &seconds
		if at > 0 && primary > 0 {
			bytes := max(int64(primary)-int64(at), 0)
			out.LagBytes = &bytes
		}
	}
	return out
}

// position returns where a member's WAL ends, as its Patroni said a second ago, or 0 if that is not
// known. Reports of agents tell positions less often.
func (s *service) position(database, name string) lsn.LSN {
	m, _ := patroni.FindMember(s.Cache.Raw, database, name)
	return lsn.LSN(m.Location)
}

func syncState(d database.Subject, m plan.Placed) string {
	mode := plan.SyncMode(d.Want, d.Layout)
	switch {
	case d.Role(m) != admin.RoleStandby:
		return ""
	case !slices.Contains(d.Sync.Standbys, m.Name) || d.Sync.Leader != d.Leader:
		return admin.SyncAsync
	case mode == patroni.SyncQuorum:
		return admin.SyncQuorum
	default:
		return admin.SyncSync
	}
}

// Words for what a member does.
const (
	stateReady    = "ready"
	stateLost     = "host lost"
	stateRemoving = "removing"
	stateStopped  = "stopped"
	stateStarting = "starting"
	stateNotReady = "not ready"
	stateDown     = "down"
	stateRestores = "restoring"
)

func memberState(d database.Subject, m plan.Placed, r member.Report) string {
	switch {
	case !d.Alive[m.Host]:
		return stateLost
	case m.Leaving:
		return stateRemoving
	case r.Ready && (m.Name == d.Leader || r.Streaming || d.Follows()):
		return stateReady
	case m.Stopped && !r.Postgres:
		return stateStopped
	case r.Postgres:
		return stateNotReady
	case r.Patroni:
		return stateStarting
	case r.Restoring != nil:
		return stateRestores
	default:
		return stateDown
	}
}
