package look

import (
	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/model/zone"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Where the home has a DNS zone, an endpoint's host is its name. Else it is its address. It also is
// the address as long as the certificates of the servers do not say the name, which takes seconds after
// the zone was set or the database was renamed. The address works all the time.

// HostOf is how clients reach an instance.
func (s *Source) HostOf(i spec.Instance) string {
	return s.host(i.ResourceID, zone.Instance, i.Scope, i.Name, i.ServedAt())
}

// WriterHost is how clients reach the writer of a cluster.
func (s *Source) WriterHost(c spec.Cluster) string {
	return s.host(route.Writer(c.ResourceID), zone.Writer, c.Scope, c.Name, c.ServedAt())
}

// ReaderHost is how clients reach the readers of a cluster.
func (s *Source) ReaderHost(c spec.Cluster) string {
	return s.host(route.Reader(c.ResourceID), zone.Reader, c.Scope, c.Name, servedAt(c.ReaderAddress, c.ReaderFormer))
}

// EndpointHost is how clients reach a custom endpoint.
func (s *Source) EndpointHost(e spec.Endpoint) string {
	return s.host(e.ResourceID, zone.Custom, e.Scope, e.Name, servedAt(e.Address, e.Former))
}

// servedAt is the address at which clients are served for certain.
func servedAt(address string, former []string) string {
	return spec.Common{Address: address, Former: former}.ServedAt()
}

// host is the name where the route of the endpoint has it. An endpoint without a route gets it with its
// first one.
func (s *Source) host(routeID string, kind zone.Kind, in spec.Scope, id, address string) string {
	name := s.NameOf(kind, in, id)
	r, err := state.View[route.Route](s.Cache, state.Route(routeID))
	if name == "" || err == nil && r.Value.Name != name {
		return address
	}
	return name
}

// NameOf is the name of an endpoint in the home's zone, whether or not it is served yet. It is "" if
// there is no zone, or none that has room for the name.
func (s *Source) NameOf(kind zone.Kind, in spec.Scope, id string) string {
	name, err := view.DNSZone(s.Cache).Name(kind, id, in.Account, in.Region)
	if err != nil {
		return ""
	}
	return name
}

// Nameable answers the error for an identifier that is too long for a name in the home's zone. what is
// the name of the parameter. Without a zone each identifier will do.
func (s *Source) Nameable(what string, kinds []zone.Kind, in spec.Scope, id string) error {
	z := view.DNSZone(s.Cache)
	for _, kind := range kinds {
		if _, err := z.Name(kind, id, in.Account, in.Region); err != nil {
			return wire.NewError(api.ErrInvalidParameterValue, "The parameter %s is not a valid identifier here: %s. Choose a shorter one.", what, err)
		}
	}
	return nil
}

// InstanceNames and ClusterNames are the kinds of names that the endpoints of an instance have, and
// those of a cluster.
var (
	InstanceNames = []zone.Kind{zone.Instance}
	ClusterNames  = []zone.Kind{zone.Writer, zone.Reader}
)
