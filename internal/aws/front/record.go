package front

import (
	"net/http"
	"net/url"
	"time"

	"howdah/internal/aws/audit"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// Record is the audit log's entry of a call, while it is being made.
type Record struct {
	audit.Record
	log   *audit.Log
	began time.Time
}

// maxAgent bounds how much is kept of a caller's name for itself. maxName bounds how much is kept
// of an access key or an action that nobody knows. Both are in bytes.
const (
	maxAgent = 256
	maxName  = 128
)

// Begin begins the entry of a call.
func (f *Front) Begin(r *http.Request, id string) *Record {
	agent := r.UserAgent()
	return f.BeginOwn(audit.Record{RequestID: id, Source: sourceOf(r), UserAgent: agent[:min(len(agent), maxAgent)]})
}

// BeginOwn begins an entry for what is no call of the API, from what is known of it.
func (f *Front) BeginOwn(known audit.Record) *Record {
	began := time.Now()
	known.Time = f.Now().UTC()
	return &Record{known, f.Audit, began}
}

// claims records that the caller says that it has this key.
func (r *Record) claims(accessKey string) { r.AccessKey = short(accessKey) }

// is records that the caller has proved who it is.
func (r *Record) is(who Principal, region string) {
	r.AccessKey, r.User, r.Account, r.Region = who.Key, who.ARN, who.Account, region
}

// sent records that the caller was sent the link of a subscription.
func (r *Record) sent(scope spec.Scope) {
	r.ByLink, r.Account, r.Region = true, scope.Account, scope.Region
}

// asks records an action, with those of its parameters that may be shown.
func (r *Record) asks(service, action string, values url.Values) {
	r.Service, r.Action = short(service), short(action)
	for _, s := range wire.Services() {
		if known, ok := s.Action(action); ok && s.Name == service {
			r.Parameters = wire.Shown(known, values)
		}
	}
}

// short returns as much of a name as is kept.
func short(name string) string { return name[:min(len(name), maxName)] }

// End writes the entry with the outcome of the call, before the caller gets it.
func (r *Record) End(status int, code string) {
	r.Status, r.Code, r.Millis = status, code, time.Since(r.began).Milliseconds()
	r.log.Write(r.Record)
}
