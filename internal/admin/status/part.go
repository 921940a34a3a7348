package status

import (
	"cmp"
	"slices"

	"howdah/internal/admin"
	"howdah/internal/edge/seen"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// controlOut lists the control planes. Each that runs holds a key below ElectionRoot, under a
// lease. The oldest key is the leader's.
func (s *service) controlOut() []admin.Control {
	running := map[string]bool{}
	leader, first := "", int64(0)
	for _, key := range s.Cache.Keys(state.ElectionRoot) {
		name, revision, _ := s.Cache.Raw(key)
		running[string(name)] = true
		if first == 0 || revision < first {
			leader, first = string(name), revision
		}
	}
	all := []admin.Control{}
	for _, m := range state.LoadAll[hostapi.ControlMember](s.Cache, state.ControlRoot) {
		all = append(all, admin.Control{
			Name: m.Value.Name, URL: m.Value.URL, Running: running[m.Value.Name], Leading: m.Value.Name == leader,
		})
	}
	return all
}

func (s *service) edgesOut() []admin.Edge {
	all := []admin.Edge{}
	for _, e := range state.LoadAll[seen.Status](s.Cache, state.EdgeRoot) {
		info := e.Value.Info
		_, _, running := s.Cache.Raw(state.Runs(e.Value.Name))
		all = append(all, admin.Edge{
			Name: e.Value.Name, Running: running, Driver: info.Driver, ClientAddressVisible: info.ClientAddressVisible,
			Cost: info.Cost, Names: e.Value.Names, Started: e.Value.Started,
		})
	}
	return all
}

func (s *service) hostsOut() []admin.Host {
	members := s.membersByHost()
	committed := map[string]int64{}
	for _, h := range s.Looks.Hosts() {
		committed[h.Name] = h.Committed
	}
	all := []admin.Host{}
	for _, record := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		h := record.Value
		out := admin.Host{
			Name: h.Name, Zone: h.Zone, Address: h.Address, State: admin.HostUnknown,
			CPUs: h.CPUs, Memory: h.Memory, Committed: committed[h.Name], Disk: h.Disk, DiskFree: h.DiskFree,
			Postgres: versions(h.Majors), Containment: h.Containment, Limits: h.Limits, Cut: h.Cut,
			Warnings: h.Warnings, Shared: h.Shared, Members: members[h.Name], Version: h.Version, Started: h.Started,
		}
		out.StorageLimit = admin.StorageHeld
		if !h.LimitsStorage {
			out.StorageLimit, out.WhyWatched = admin.StorageWatched, cmp.Or(h.WhyWatched, "its agent is of an older version")
		}
		if out.Members == nil {
			out.Members = []string{}
		}
		if live, err := state.Load[member.Liveness](s.Cache, state.Live(h.Name)); err == nil {
			out.State, out.Since = admin.HostLost, live.Value.Since
			if live.Value.Alive {
				out.State = admin.HostAlive
			}
		}
		_, _, out.Draining = s.Cache.Raw(state.Drain(h.Name))
		all = append(all, out)
	}
	return all
}

func versions(majors map[int]string) []string {
	all := []string{}
	for _, full := range majors {
		all = append(all, full)
	}
	slices.Sort(all)
	return all
}

// membersByHost returns the names DATABASE/MEMBER on each host, also on a host that has not
// described itself or was forgotten.
func (s *service) membersByHost() map[string][]string {
	all := map[string][]string{}
	for _, d := range s.Databases.All() {
		for _, m := range d.Layout.Members {
			all[m.Host] = append(all[m.Host], d.Common.Name+"/"+m.Name)
		}
	}
	return all
}
