package member

import (
	"encoding/json"
	"time"
)

// ClusterKind is what AWS's drivers take a database for.
type ClusterKind string

// The kinds. An instance with a standby is no cluster.
const (
	AuroraCluster  ClusterKind = "aurora"
	MultiAZCluster ClusterKind = "multi-az"
)

// Topology says who belongs to a cluster, so that its servers can tell drivers. It does not say who
// is the primary: that changes without the control plane.
type Topology struct {
	Kind    ClusterKind   `json:"kind"`
	Members []ClusterSeat `json:"members"` // by name
}

// ClusterSeat is a member, and the DB instance that it is.
type ClusterSeat struct {
	Name string `json:"name"` // of the member, mN
	// ID and Instance are the resource id and the identifier of the DB instance.
	ID       string `json:"id"`
	Instance string `json:"instance"`
	// Endpoint and Port are where clients reach the instance.
	Endpoint string `json:"endpoint"`
	Port     int    `json:"port"`
	// Address and Listen are where other members reach this one.
	Address string `json:"address"`
	Listen  int    `json:"listen"`
	// Application is the name that it gives when it receives WAL.
	Application string `json:"application"`
}

// TopologySettings are the PostgreSQL settings that tell a server of its cluster, if it belongs to
// one. The module knows them (extensions/howdah/src/topology.c).
func (a Assignment) TopologySettings() map[string]string {
	if a.Topology == nil {
		return nil
	}
	text, err := json.Marshal(struct {
		Self    string        `json:"self"`
		Members []ClusterSeat `json:"members"`
	}{a.Name, a.Topology.Members})
	if err != nil {
		panic("member: " + err.Error()) // strings and numbers always encode
	}
	return map[string]string{"howdah.cluster": string(a.Topology.Kind), "howdah.topology": string(text)}
}

// Seen is what the agent of a member sees of its cluster, as it tells the server.
type Seen struct {
	At time.Time `json:"at"`
	// Leader is who has the leader key; "": nobody.
	Leader string `json:"leader"`
	// Writer is who had it last, and WriterAt when that was seen.
	Writer   string    `json:"writer,omitempty"`
	WriterAt time.Time `json:"writer_at,omitzero"`
	// Members holds, by name, when each member was seen last.
	Members map[string]time.Time `json:"members"`
}
