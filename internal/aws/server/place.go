package server

import (
	"maps"
	"slices"
	"sync"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// hosts are the places that a new database could go to now.
func (s *Server) hosts() []plan.Host { return s.places.Hosts() }

// canPlace refuses what no host has room for, beside the members that the
// database has already. It is placed where the subnet group of its record is.
func (s *Server) canPlace(c spec.Common, want plan.Database) error {
	want.Zones = s.covered(c)
	in := plan.Input{Now: s.now(), Want: want, Hosts: s.hosts(), Policy: s.Policy}
	if layout, err := state.Load[plan.Layout](s.Cache, state.Layout(want.ID)); err == nil {
		in.Layout = layout.Value
	}
	if err := plan.CanPlace(in); err != nil {
		return noRoom(err.Error())
	}
	return nil
}

func noRoom(why string) error {
	return wire.NewError(rds.ErrInsufficientDBInstanceCapacity, "The requested DB instance cannot be placed: %s.", why)
}

// canGrow refuses a larger class for members that their hosts have no room for:
// a class is changed where the member is.
func (s *Server) canGrow(f plan.Facts, seat, before, after string) error {
	old, _ := spec.LookupClass(before)
	wanted, _ := spec.LookupClass(after)
	if s.Policy.Overcommit || wanted.Memory <= old.Memory && wanted.CPUs <= old.CPUs {
		return nil
	}
	hosts := s.hosts()
	for _, m := range f.Layout.Members {
		at := slices.IndexFunc(hosts, func(h plan.Host) bool { return h.Name == m.Host })
		if m.Seat != seat || m.Leaving || at < 0 {
			continue
		}
		h := hosts[at]
		switch {
		case wanted.CPUs > h.CPUs:
			return noRoom("host " + h.Name + " has too few CPUs for the class")
		case h.Committed-old.Memory+wanted.Memory > h.Memory:
			return noRoom("host " + h.Name + " has too little memory left for the class")
		}
	}
	return nil
}

// zones are those that the home has hosts in. The list must not be altered.
func (s *Server) zones() []string {
	changes := s.Cache.Changes(state.HostRoot)
	s.placed.mu.Lock()
	defer s.placed.mu.Unlock()
	if s.placed.hostChanges == changes {
		return s.placed.names
	}
	all := map[string]bool{}
	for _, h := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		all[h.Value.Zone] = true
	}
	s.placed.hostChanges, s.placed.names = changes, slices.Sorted(maps.Keys(all))
	return s.placed.names
}

// zoneIn checks an Availability Zone that was asked for.
func (s *Server) zoneIn(scope spec.Scope, name *string) (string, error) {
	if name == nil {
		return "", nil
	}
	zone, ok := scope.ParseZone(*name)
	if !ok || !slices.Contains(s.zones(), zone) {
		return "", wire.NewError(api.ErrInvalidParameterValue, "Availability zone %s is not valid: no host is there.", *name)
	}
	return zone, nil
}

// placed is where the home has hosts.
type placed struct {
	mu          sync.Mutex
	hostChanges int64    // guarded by mu: as of when names are
	names       []string // guarded by mu: of zones
}
