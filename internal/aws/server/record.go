package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// record is the audit log's entry of a call in the making.
type record struct {
	audit.Record
	server *Server
	began  time.Time
}

// maxAgent is how many bytes of a caller's name for itself are kept, and maxName of
// an access key or an action that nobody knows.
const (
	maxAgent = 256
	maxName  = 128
)

// record begins the entry of a call.
func (s *Server) record(r *http.Request, id string) *record {
	began := time.Now()
	agent := r.UserAgent()
	return &record{server: s, began: began, Record: audit.Record{
		Time: s.now().UTC(), RequestID: id, Source: sourceOf(r), UserAgent: agent[:min(len(agent), maxAgent)],
	}}
}

// claims: the caller says that it has this key.
func (r *record) claims(accessKey string) { r.AccessKey = accessKey[:min(len(accessKey), maxName)] }

// is: the caller has proved who it is.
func (r *record) is(who principal, region string) {
	r.AccessKey, r.User, r.Account, r.Region = who.key, who.arn, who.account, region
}

// sent: the caller was sent the link of a subscription.
func (r *record) sent(scope spec.Scope) {
	r.ByLink, r.Account, r.Region = true, scope.Account, scope.Region
}

// asks notes an action with those of its parameters that may be shown.
func (r *record) asks(service, action string, values url.Values) {
	r.Service, r.Action = service[:min(len(service), maxName)], action[:min(len(action), maxName)]
	for _, s := range wire.Services() {
		if known, ok := s.Action(action); ok && s.Name == service {
			r.Parameters = wire.Shown(known, values)
		}
	}
}

// secretWords mark members of admin requests that are not to be shown, should there
// ever be one.
var secretWords = []string{"secret", "password", "token"}

// asksAdmin notes a verb of the admin API with its request.
func (r *record) asksAdmin(verb string, body []byte) {
	r.Service, r.Action = admin.Service, verb[:min(len(verb), maxName)]
	var members map[string]any
	if _, known := adminVerbs[verb]; !known || json.Unmarshal(body, &members) != nil {
		return
	}
	r.Parameters = map[string]string{}
	for name, value := range members {
		text := fmt.Sprint(value)
		if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(strings.ToLower(name), w) }) {
			text = wire.Masked
		}
		r.Parameters[name[:min(len(name), maxName)]] = text[:min(len(text), audit.MaxText)]
	}
}

// end writes the entry with the outcome of the call, before the caller gets it.
func (r *record) end(status int, code string) {
	r.Status, r.Code, r.Millis = status, code, time.Since(r.began).Milliseconds()
	r.server.Audit.Write(r.Record)
}
