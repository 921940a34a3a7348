package plan

import (
	"slices"

	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
)

// ClusterConfig returns the configuration that all members of a database share.
func ClusterConfig(want Database, layout Layout) patroni.Cluster {
	return patroni.Cluster{
		Sync:           SyncMode(want, layout),
		WaitForStandby: want.WaitForStandby,
		Parameters:     want.Parameters,
		Slots:          want.Slots,
		LogicalSlots:   want.LogicalSlots,
		Upstream:       want.Upstream,
	}
}

// Assign returns the complete assignment of one member, except for its generation. hostMemory is
// the memory of its host, in bytes; PostgreSQL is told to use no more than that.
func Assign(want Database, layout Layout, m Placed, hostMemory int64) member.Assignment {
	seat := seatFor(want, m)
	a := member.Assignment{
		ID: member.ID(want.ID, m.Name), Want: member.Running,
		Scope: want.ID, Name: m.Name, OwnName: m.OwnName, Address: m.Address, Port: m.Port, RESTPort: m.RESTPort, Major: want.Major,
		Tier: seat.Tier, Boost: m.Boost, NoFailover: m.Barred, NoSync: m.NoSync, RequireTLS: want.RequireTLS, IAMAuth: want.IAMAuth,
		Parameters: memberParameters(want, seat, usable(seat.Limits.MemoryBytes, hostMemory)), Cluster: ClusterConfig(want, layout), Limits: seat.Limits,
		ServerIPs: append([]string{m.Address}, want.ServerIPs...), ServerNames: want.ServerNames, Topology: topology(want, layout),
		Owner: want.Owner, Encrypted: want.Encrypted, Archive: want.Archive, Copy: m.Copy,
	}
	if len(layout.Missing) > 0 {
		a.Parameters[absentExtensions] = param.Quoted(layout.Missing)
	}
	if slices.Contains(layout.Warm, m.Name) {
		a.Parameters["ccm.enabled"] = "on"
		if seat.Key == "" { // the standby of an instance serves no reads, so that it needs no page for itself
			a.Parameters["ccm.mirror"] = "on"
		}
	}
	if layout.KeyAuthority != "" {
		a.Keys = &member.Keys{Authority: layout.KeyAuthority, Admits: want.Admits, Own: m.OwnKey, Only: layout.OnlyOwnKeys}
	}
	if want.Allow != nil {
		a.Allow = append(append([]string{}, want.Allow...), want.Between...) // never nil
	}
	if line, _, ok := spec.ParseAuthority(seat.Authority); ok && seat.Authority != spec.HomeAuthority {
		a.Authority, a.ServerKey = seat.Authority, line.ServerKey
	}
	if want.Restore != nil {
		a.Inherits = true
		if layout.restoring(want) && !m.Leaving {
			a.Restore = want.Restore
		}
	}
	switch {
	case m.Leaving:
		a.Want = member.Absent
	case m.Stopped:
		a.Want = member.Stopped
	}
	return a
}

// topology says who belongs to a cluster: the members that have a seat of an instance. While one
// takes another's place, both are there.
func topology(want Database, layout Layout) *member.Topology {
	if want.Cluster == "" {
		return nil
	}
	t := &member.Topology{Kind: want.Cluster, Members: []member.ClusterSeat{}}
	for _, m := range layout.Members {
		at := slices.IndexFunc(want.Seats, func(s Seat) bool { return s.Key == m.Seat })
		if at < 0 || m.Leaving {
			continue
		}
		seat := want.Seats[at]
		application := m.Name
		if m.OwnName {
			application = patroni.OwnName(want.ID, m.Name)
		}
		t.Members = append(t.Members, member.ClusterSeat{
			Name: m.Name, ID: seat.Key, Instance: seat.Instance, Endpoint: seat.Endpoint, Port: seat.Port,
			Address: m.Address, Listen: m.Port, Application: application,
		})
	}
	return t
}

func usable(class, host int64) int64 {
	if host > 0 && (class == 0 || host < class) {
		return host
	}
	return class
}

// seatFor returns the seat of a member. If its seat is gone, it returns any seat: the member needs
// some settings until it leaves.
func seatFor(want Database, m Placed) Seat {
	for _, s := range want.Seats {
		if s.Key == m.Seat {
			return s
		}
	}
	switch {
	case len(want.Seats) > 0:
		return want.Seats[0]
	case want.Last != nil:
		return *want.Last
	}
	return Seat{}
}
