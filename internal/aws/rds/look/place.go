package look

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
	"howdah/internal/view"
)

// AgentAddress is where the agent of a host answers, or "".
func (s *Source) AgentAddress(host string) string {
	record, err := state.Load[member.Host](s.Cache, state.Host(host))
	if err != nil {
		return ""
	}
	return record.Value.Listen
}

// Hosts are the places that a new database could go to now.
func (s *Source) Hosts() []plan.Host { return s.Places.Hosts() }

// CanPlace refuses what no host has room for, beside the members that the
// database has already. It is placed where the subnet group of its record is.
func (s *Source) CanPlace(c spec.Common, want plan.Database) error {
	_, err := s.WhereTo(c, want)
	return err
}

// WhereTo are the hosts that the members of a database would get now. It refuses what CanPlace does.
func (s *Source) WhereTo(c spec.Common, want plan.Database) ([]string, error) {
	want.Zones = s.Covered(c)
	in := plan.Input{Now: s.Now(), Want: want, Hosts: s.Hosts(), Policy: s.Policy}
	if layout, err := state.Load[plan.Layout](s.Cache, state.Layout(want.ID)); err == nil {
		in.Layout = layout.Value
	}
	in.Source = view.Source(s.Cache, want, in.Layout)
	hosts, err := plan.WhereTo(in)
	if err != nil {
		return nil, noRoom(err.Error())
	}
	return hosts, nil
}

func noRoom(why string) error {
	return wire.NewError(rds.ErrInsufficientDBInstanceCapacity, "The requested DB instance cannot be placed: %s.", why)
}

// CanGrow refuses a larger class for members that their hosts have no room for:
// a class is changed where the member is.
func (s *Source) CanGrow(f plan.Facts, seat, before, after string) error {
	old, _ := spec.LookupClass(before)
	wanted, _ := spec.LookupClass(after)
	if s.Policy.Overcommit || wanted.Memory <= old.Memory && wanted.CPUs <= old.CPUs {
		return nil
	}
	hosts := s.Hosts()
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

// Zones are those that the home has hosts in. The list must not be altered.
func (s *Source) Zones() []string {
	changes := s.Cache.Changes(state.HostRoot)
	s.zones.mu.Lock()
	defer s.zones.mu.Unlock()
	if s.zones.hostChanges == changes {
		return s.zones.names
	}
	all := map[string]bool{}
	for _, h := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		all[h.Value.Zone] = true
	}
	s.zones.hostChanges, s.zones.names = changes, slices.Sorted(maps.Keys(all))
	return s.zones.names
}

// ZonesOf are the zones of a cluster, as the API names them: those asked for, or the home's first
// three.
func (s *Source) ZonesOf(c spec.Cluster) []string {
	zones := c.Zones
	if len(zones) == 0 {
		zones = s.Zones()
		zones = zones[:min(3, len(zones))]
	}
	names := []string{}
	for _, z := range zones {
		names = append(names, c.ZoneName(z))
	}
	return names
}

// ZoneIn checks an Availability Zone that was asked for.
func (s *Source) ZoneIn(scope spec.Scope, name *string) (string, error) {
	if name == nil {
		return "", nil
	}
	zone, ok := scope.ParseZone(*name)
	if !ok || !slices.Contains(s.Zones(), zone) {
		return "", wire.NewError(api.ErrInvalidParameterValue, "Availability zone %s is not valid: no host is there.", *name)
	}
	return zone, nil
}

// zones is where the home has hosts.
type zones struct {
	mu          sync.Mutex
	hostChanges int64    // guarded by mu: as of when names are
	names       []string // guarded by mu: of zones
}
