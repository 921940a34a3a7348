package front

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"time"

	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/model/spec"
)

// Call is what handlers know of a request. The scope is the caller's, or the one that the link of a
// message names.
type Call struct {
	spec.Scope
	Who       Principal
	Action    string // with its service: "rds:CreateDBInstance"
	Source    string // address of the caller
	Secure    bool   // over TLS
	ID        string // request id
	Now       time.Time
	Anonymous bool // by a link, perhaps one that was sent to the caller

	front  *Front  // nil: it is a call of Howdah's own, on nobody's behalf
	record *Record // nil: as front
}

// Call returns the call of a request whose caller is known.
func (f *Front) Call(r *http.Request, identity sigv4.Identity, who Principal, action, id string, record *Record) Call {
	return Call{
		Scope: spec.Scope{Account: who.Account, Region: identity.Region}, Who: who, Action: identity.Service + ":" + action,
		Source: sourceOf(r), Secure: r.TLS != nil, ID: id, Now: f.Now().UTC(), front: f, record: record,
	}
}

// Sent records of a call by a link that the caller knew what only somebody in this scope was sent.
func (c Call) Sent(scope spec.Scope) {
	if c.Anonymous {
		c.record.sent(scope)
	}
}

// Shows records what a call asked for, if no model of the service says what may be shown.
func (c Call) Shows(parameters map[string]string) { c.record.Parameters = parameters }

func sourceOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// RequestID returns a new id, for a request or for anything else. Nobody can guess it.
func RequestID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("front: no randomness: " + err.Error())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
