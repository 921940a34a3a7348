// Package front is what happens to a request before and after its handler, whichever service it is
// for: HTTP, in AWS's query protocol or in JSON 1.1; who calls; what the caller's policies say;
// checks that hold for all input; the record for the audit log; and errors, in the words of the
// service.
//
// A service describes itself in a Service, and is given to New. Package front knows none by name.
//
// Invariants: no byte of a body is read before everything else was found right that can be checked
// without it. Nothing is taken apart before its signature was found right. No handler of the query
// protocol is called before the caller's policies allowed the action on everything that the request
// names. Every call leaves a record before its answer is sent.
package front

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"howdah/api"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/home"
	"howdah/internal/state"
)

// Timeout bounds a call. Calls read and write state. A call that sets parameters also asks
// PostgreSQL what it takes. A call for a log file asks the host that has the file.
const Timeout = 15 * time.Second

// Config is what a front needs. All fields are required unless they say otherwise.
type Config struct {
	Home  *home.Home
	Cache *state.Cache // which has the access keys
	Log   *slog.Logger
	// Audit may be nil. Then calls are not recorded.
	Audit *audit.Log
	// Scarce reports whether only the room for failovers is left in the state. nil is never.
	Scarce func() bool
	Now    func() time.Time
}

// Front is an http.Handler.
type Front struct {
	Config
	order    []*Service
	services map[string]*Service // by name
	keys     *keyring
}

// New returns a front of services. A request for none of them is answered in the language of the
// first one, which must speak the query protocol.
func New(cfg Config, services ...*Service) *Front {
	f := &Front{Config: cfg, order: services, services: map[string]*Service{}, keys: &keyring{home: cfg.Home, cache: cfg.Cache}}
	for _, s := range services {
		f.services[s.Name] = s
	}
	return f
}

// ServeHTTP answers one request: read, verify, find the action, decode, do, encode. Whatever
// goes wrong on the way becomes an error document.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, known := f.services[sigv4.ClaimedService(r)]
	switch {
	case known && service.Target != "":
		f.serveJSON(w, r, service)
	case known:
		f.serveQuery(w, r, service)
	default:
		f.serveQuery(w, r, f.order[0])
	}
}

// find returns InvalidAction for what the service does not have, and says so plainly for what
// Howdah does not have yet.
func (f *Front) find(service, name string) (*Service, Action, error) {
	s, ok := f.services[service]
	if !ok {
		return nil, Action{}, wire.NewError(api.ErrInvalidAction, "The service %s is not available here: Howdah speaks %s.", service, f.names())
	}
	do, ok := s.Actions[name]
	if ok {
		return s, do, nil
	}
	return s, do, s.refuse(name)
}

// names returns the names of the services, as in a sentence.
func (f *Front) names() string {
	var all []string
	for _, s := range f.order {
		all = append(all, s.Name)
	}
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// Recover makes an error of a panic, and logs it, so that one call that goes wrong does not end the
// process. Defer it.
func (f *Front) Recover(err *error) {
	if p := recover(); p != nil {
		f.Log.Error("handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = fmt.Errorf("handler panicked: %v", p)
	}
}

// do does an action, for as long as a call may take.
func (f *Front) do(r *http.Request, action Action, c Call, in request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), Timeout)
	defer cancel()
	return action.do(ctx, c, in)
}
