// Package hostapi is how hosts talk to the control plane besides etcd: joining with a token,
// certificates, and the heartbeat. It shares the API's port, below Path. Requests and answers are
// JSON. Everything except joining needs a certificate of the home.
package hostapi

import (
	"howdah/internal/identity/home"
)

// Path is the beginning of all paths of this API.
const Path = "/howdah/v1/"

// Kind says what a joining process is. It becomes part of its certificate's name.
type Kind string

// The kinds that join with an agent token.
const (
	Agent Kind = "agent"
	Edge  Kind = "edge"
)

// heartbeat is the body of a heartbeat. Older agents send an empty body.
type heartbeat struct {
	Agent string `json:"agent,omitempty"`
}

// maxHeartbeat bounds that body, in bytes.
const maxHeartbeat = 1 << 10

// JoinRequest asks to become a host or an edge of the home.
type JoinRequest struct {
	Token string `json:"token"`
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"`
	CSR   []byte `json:"csr"`
}

// JoinAnswer is what a host needs to work.
type JoinAnswer struct {
	HomeID      string   `json:"home_id"`
	CA          []byte   `json:"ca"`
	Certificate []byte   `json:"certificate"`
	Etcd        []string `json:"etcd"`    // client URLs
	Control     []string `json:"control"` // URLs of all control planes
}

// ServerJoinRequest asks to become a further control plane.
type ServerJoinRequest struct {
	Token    string `json:"token"`
	Name     string `json:"name"`
	PeerAddr string `json:"peer_addr"`
	// Reads is the newest format of records that the new control plane reads (package format).
	Reads int `json:"reads,omitempty"`
}

// ServerJoinAnswer is everything that makes a control plane. It has secrets.
type ServerJoinAnswer struct {
	Home        home.Config       `json:"home"`
	Join        home.Join         `json:"join"`
	Credentials []home.Credential `json:"credentials"`
	CACert      []byte            `json:"ca_cert"`
	CAKey       []byte            `json:"ca_key"`
	Peers       string            `json:"peers"` // etcd's initial cluster
}

// CertificateRequest asks for a certificate for the caller itself, or for a member that is assigned
// to the caller's host.
type CertificateRequest struct {
	Member string `json:"member,omitempty"`
	For    Use    `json:"for,omitempty"`
	CSR    []byte `json:"csr"`
}

// Use says what a certificate is to be good for.
type Use string

// The uses.
const (
	// ForAll is for the caller as a client and as a server. A member's certificate also names the
	// addresses of its assignment: this is for hosts whose members have no keys of their own.
	ForAll Use = ""
	// ForServer is for a server alone, at the addresses of the member's assignment, or at the
	// address of the caller's host. It opens nothing.
	ForServer Use = "server"
	// ForClient is for what a member shows of itself as a client. The authority of members signs
	// it, and it names the member.
	ForClient Use = "client"
)

// CertificateAnswer is the signed certificate with its chain.
type CertificateAnswer struct {
	Certificate []byte `json:"certificate"`
	// Members is the authority of members, in PEM. It comes with a certificate ForClient.
	Members []byte `json:"members,omitempty"`
}

// failure is the body of an answer that is not 200.
type failure struct {
	Error string `json:"error"`
}
