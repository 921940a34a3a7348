package plan

import "howdah/internal/member"

// Status words of DB instances (RDS user guide, "Viewing DB instance status").
const (
	Available   = "available"
	Creating    = "creating"
	Deleting    = "deleting"
	Modifying   = "modifying"
	Rebooting   = "rebooting"
	Starting    = "starting"
	Stopping    = "stopping"
	StoppedWord = "stopped"
	StorageFull = "storage-full"
	FailingOver = "failing-over" // clusters
	Capacity    = "insufficient-capacity"
)

// Facts are what a status is judged by.
type Facts struct {
	Want     Database
	Layout   Layout
	Reports  map[string]member.Report
	Alive    map[string]bool // hosts
	Leader   string
	Problems []string
}

func (f Facts) ready(m Placed) bool {
	r := f.Reports[ID(f.Want.ID, m.Name)]
	return !m.Leaving && f.Alive[m.Host] && r.Ready && (m.Name == f.Leader || r.Streaming || f.Want.Upstream != nil)
}

// Primary is the member with the leader key, if it serves.
func (f Facts) Primary() (Placed, bool) {
	for _, m := range f.Layout.Members {
		if m.Name == f.Leader && f.ready(m) {
			return m, true
		}
	}
	return Placed{}, false
}

// Member is the member of a seat that serves, or else any member of it.
func (f Facts) Member(seat string) (m Placed, ready, found bool) {
	for _, candidate := range f.Layout.Members {
		if candidate.Seat != seat || candidate.Leaving {
			continue
		}
		m, found = candidate, true
		if f.ready(candidate) {
			return candidate, true, true
		}
	}
	return m, false, found
}

// DatabaseStatus is the status of a database as a whole: of an instance that is
// no member of a cluster, or of a cluster. What was asked for and is not done yet
// comes first; then the truth about the process.
func (f Facts) DatabaseStatus() string {
	switch {
	case f.Want.State == member.Absent:
		return Deleting
	case f.Want.State == member.Stopped:
		if f.anyProcess() || f.Want.Change > f.Layout.Changed {
			return Stopping
		}
		return StoppedWord
	case !f.Layout.Created:
		if len(f.Layout.Members) == 0 && len(f.Problems) > 0 {
			return Capacity
		}
		return Creating
	}
	_, serving := f.Primary()
	switch {
	case f.storageFull():
		return StorageFull
	case f.Want.Reboot > f.Layout.Rebooted:
		return Rebooting
	case f.Want.Failover > f.Layout.FailedOver:
		return FailingOver
	case f.Want.Change > f.Layout.Changed:
		return f.Want.ChangeStatus
	case !serving:
		// Nobody asked for it: the platform is bringing it back.
		return Rebooting
	}
	return Available
}

// SeatStatus is the status of one instance of a cluster.
func (f Facts) SeatStatus(seat Seat, deleting bool) string {
	m, ready, found := f.Member(seat.Key)
	switch {
	case deleting:
		return Deleting
	case !found:
		return Creating
	case f.Want.State != member.Running:
		return f.DatabaseStatus()
	case seat.Reboot > m.Rebooted:
		return Rebooting
	case seat.Restart > m.Restarted:
		return Modifying
	case ready:
		return Available
	case f.Layout.Created && f.everReady(m):
		return Rebooting
	}
	return Creating
}

// everReady: the member has data of its own already.
func (f Facts) everReady(m Placed) bool {
	r := f.Reports[ID(f.Want.ID, m.Name)]
	return r.Timeline > 0
}

func (f Facts) anyProcess() bool {
	for _, m := range f.Layout.Members {
		r := f.Reports[ID(f.Want.ID, m.Name)]
		if f.Alive[m.Host] && (r.Patroni || r.Postgres) {
			return true
		}
	}
	return false
}

func (f Facts) storageFull() bool {
	for _, m := range f.Layout.Members {
		r := f.Reports[ID(f.Want.ID, m.Name)]
		if m.Name == f.Leader && (r.Problem == member.StorageFull || r.Problem == member.DiskFull) {
			return true
		}
	}
	return false
}
