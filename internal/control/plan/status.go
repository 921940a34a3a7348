package plan

import (
	"slices"

	"howdah/internal/model/member"
)

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
	// CannotRestore says that the first data cannot be made of the backup. Those who wait for the
	// database stop at it.
	CannotRestore = "incompatible-restore"
)

// stepNoHost names the step of a decision that found no host for a member.
const stepNoHost = "waiting for a host"

// Facts are what a status depends on.
type Facts struct {
	Want     Database
	Layout   Layout
	Reports  map[string]member.Report
	Alive    map[string]bool // hosts
	Leader   string
	Problems []string
	// Ways holds, by seat, the addresses to which edges lead clients. "" is the writer's.
	Ways map[string][]string
	// Known holds the seats whose instances have been available once.
	Known map[string]bool
}

func (f Facts) ready(m Placed) bool {
	r := f.Reports[member.ID(f.Want.ID, m.Name)]
	return !m.Leaving && f.Alive[m.Host] && r.Ready && (m.Name == f.Leader || r.Streaming || f.Want.Upstream != nil)
}

// Primary returns the member with the leader key if it serves in its role. A replica that is being
// promoted does not serve before it takes writes.
func (f Facts) Primary() (Placed, bool) {
	for _, m := range f.Layout.Members {
		if m.Name == f.Leader && f.ready(m) {
			return m, f.Want.Upstream != nil || !f.Reports[member.ID(f.Want.ID, m.Name)].InRecovery
		}
	}
	return Placed{}, false
}

// Member returns the member of a seat that serves, or else any member of the seat.
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

// DatabaseStatus returns the status of an instance that is no member of a cluster, or of a cluster.
// A request that is not done yet comes first, then what is true of the process.
func (f Facts) DatabaseStatus() string {
	switch {
	case f.Want.State == member.Absent:
		return Deleting
	case f.Want.State == member.Stopped:
		if f.anyProcess() || f.Want.Change > f.Layout.Changed {
			return Stopping
		}
		return StoppedWord
	case len(f.Want.Seats) == 0 && f.Layout.Unrestorable != "":
		return CannotRestore
	case len(f.Want.Seats) == 0:
		return f.change(Available) // a cluster without instances: its data are kept
	case !f.Layout.Created:
		if _, failed := f.RestoreFailed(); failed {
			return CannotRestore
		}
		if len(f.Layout.Members) == 0 && (len(f.Problems) > 0 || f.waitsForHost()) {
			return Capacity
		}
		return Creating
	}
	primary, serving := f.Primary()
	serving = serving && (f.Want.Hidden || f.reached("", primary))
	switch {
	case f.storageFull():
		return StorageFull
	case f.Want.Reboot > f.Layout.Rebooted:
		return Rebooting
	case f.Want.Failover > f.Layout.FailedOver:
		return FailingOver
	case !serving:
		// Unless a user asked for this, the platform is bringing the database back.
		return f.change(Rebooting)
	}
	return f.change(Available)
}

// change returns the status of a change that is not done yet, or otherwise if there is none.
func (f Facts) change(otherwise string) string {
	if f.Want.Change > f.Layout.Changed && f.Want.ChangeStatus != "" {
		return f.Want.ChangeStatus
	}
	return otherwise
}

// waitsForHost reports whether the planner found no host for a member.
func (f Facts) waitsForHost() bool {
	steps := f.Layout.Steps
	return len(steps) > 0 && steps[len(steps)-1].Name == stepNoHost
}

// SeatStatus returns the status of one instance of a cluster.
func (f Facts) SeatStatus(seat Seat, deleting bool) string {
	m, ready, found := f.Member(seat.Key)
	ready = ready && f.reached(seat.Key, m)
	known := f.Known[seat.Key]
	switch {
	case deleting:
		return Deleting
	case f.Want.State != member.Running:
		return f.DatabaseStatus()
	case !found && !known && f.waitsForHost():
		return Capacity
	case !known:
		if found && ready && f.Layout.Created && seat.Restart <= m.Restarted {
			return Available
		}
		if _, failed := f.RestoreFailed(); failed {
			return CannotRestore
		}
		return Creating
	case !found:
		return Rebooting
	case f.full(m):
		return StorageFull
	case seat.Reboot > m.Rebooted:
		return Rebooting
	case seat.Restart > m.Restarted:
		return Modifying
	case ready:
		return Available
	}
	if f.Want.Change > f.Layout.Changed && f.Want.ChangeStatus == Starting {
		return Starting
	}
	return Rebooting
}

// reached reports whether an edge leads the clients of a seat to this member.
func (f Facts) reached(seat string, m Placed) bool { return slices.Contains(f.Ways[seat], m.Listen()) }

func (f Facts) anyProcess() bool {
	for _, m := range f.Layout.Members {
		r := f.Reports[member.ID(f.Want.ID, m.Name)]
		if f.Alive[m.Host] && (r.Patroni || r.Postgres) {
			return true
		}
	}
	return false
}

func (f Facts) storageFull() bool {
	for _, m := range f.Layout.Members {
		if m.Name == f.Leader && f.full(m) {
			return true
		}
	}
	return false
}

func (f Facts) full(m Placed) bool {
	problem := f.Reports[member.ID(f.Want.ID, m.Name)].Problem
	return problem == member.StorageFull || problem == member.DiskFull
}
