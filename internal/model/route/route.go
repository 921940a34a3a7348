// Package route decides where each database endpoint leads. It is pure. The control plane writes
// which members an endpoint may lead to. An edge derives the targets from that, as it sees
// Patroni's leader key and the state of the members change.
package route

// Kind is how an endpoint chooses among members.
type Kind string

// The kinds.
const (
	Leader  Kind = "leader"  // the primary, or the leader of a database that follows
	Readers Kind = "readers" // all replicas; the primary when there is none
	Seats   Kind = "seats"   // the members of certain seats
)

// Route is what an edge needs to know about an endpoint. Only reconcile writes it.
type Route struct {
	ID       string `json:"id"`
	Database string `json:"database"`
	Kind     Kind   `json:"kind"`
	Listen   string `json:"listen"` // ip:port that clients use
	// Name is the DNS name of the endpoint, "" if it has none. The certificates of all members name
	// it.
	Name    string   `json:"name,omitempty"`
	Members []Member `json:"members"`
	Seats   []string `json:"seats,omitempty"`
	// ReadersOnly leaves the primary out of a Seats route.
	ReadersOnly bool `json:"readers_only,omitempty"`
	// Allow lists the networks that may connect, in CIDR notation. nil admits everyone.
	Allow []string `json:"allow,omitzero"`
	// Follows says that the leader is a replica of another database, and never writable.
	Follows bool `json:"follows,omitempty"`
}

// Member is a member that an endpoint may lead to.
type Member struct {
	Name    string `json:"name"`
	Seat    string `json:"seat,omitempty"`
	Host    string `json:"host"`
	Address string `json:"address"` // ip:port of its PostgreSQL
}

// Way says where an edge leads new clients of a route. That edge writes it after it switched.
type Way struct {
	Route   string   `json:"route"`
	Edge    string   `json:"edge"`
	Listen  string   `json:"listen"`
	Targets []string `json:"targets"`
}

// View is what an edge knows of a database now.
type View struct {
	// Leader is the member that has the leader key and was seen to serve in its role. It is ""
	// while there is none.
	Leader string
	// Serving is the set of members that serve clients.
	Serving map[string]bool
}

// Targets returns the addresses that new connections go to. If there are none, the edge refuses new
// connections.
func (r Route) Targets(v View) []string {
	switch r.Kind {
	case Leader:
		return r.pick(func(m Member) bool { return m.Name == v.Leader })
	case Readers:
		readers := r.pick(func(m Member) bool { return m.Name != v.Leader && v.Serving[m.Name] })
		if len(readers) > 0 {
			return readers
		}
		return r.pick(func(m Member) bool { return m.Name == v.Leader })
	default:
		return r.pick(func(m Member) bool { return r.hasSeat(m) && r.eligible(m, v) })
	}
}

// Seat returns the seat whose clients take this route, and "" for the route to the writer. ok is
// false for a route that chooses among several members.
func (r Route) Seat() (key string, ok bool) {
	if r.Kind == Leader {
		return "", true
	}
	return r.ID, r.Kind == Seats && len(r.Seats) == 1 && r.Seats[0] == r.ID
}

func (r Route) eligible(m Member, v View) bool {
	if m.Name == v.Leader {
		return !r.ReadersOnly
	}
	return v.Serving[m.Name]
}

func (r Route) hasSeat(m Member) bool {
	for _, s := range r.Seats {
		if s == m.Seat {
			return true
		}
	}
	return false
}

func (r Route) pick(fits func(Member) bool) []string {
	var addresses []string
	for _, m := range r.Members {
		if fits(m) {
			addresses = append(addresses, m.Address)
		}
	}
	return addresses
}
