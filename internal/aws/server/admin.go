package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"howdah/api"
	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
)

// adminVerb does one verb of the admin API.
type adminVerb struct {
	timeout time.Duration
	do      func(ctx context.Context, s *Server, c front.Call, body []byte) (any, error)
}

// adminVerbs are all that package admin names.
var adminVerbs = map[string]adminVerb{
	admin.VerbStatus:     {front.Timeout, verb((*Server).adminStatus)},
	admin.VerbDatabase:   {front.Timeout, verb((*Server).adminDatabase)},
	admin.VerbFailovers:  {front.Timeout, verb((*Server).adminFailovers)},
	admin.VerbDrain:      {front.Timeout, verb((*Server).adminDrain)},
	admin.VerbUndrain:    {front.Timeout, verb((*Server).adminUndrain)},
	admin.VerbForgetHost: {front.Timeout, verb((*Server).adminForgetHost)},
	admin.VerbHostOff:    {front.Timeout, verb((*Server).adminHostOff)},
	admin.VerbWipe:       {wipeTimeout, verb((*Server).adminWipe)},
	admin.VerbKeyCreate:  {front.Timeout, verb((*Server).adminKeyCreate)},
	admin.VerbKeyList:    {front.Timeout, verb((*Server).adminKeyList)},
	admin.VerbKeyDelete:  {front.Timeout, verb((*Server).adminKeyDelete)},

	admin.VerbAuthorityCreate: {authorityTimeout, verb((*Server).adminAuthorityCreate)},
	admin.VerbAuthorityList:   {front.Timeout, verb((*Server).adminAuthorityList)},

	admin.VerbEtcd: {upkeepTimeout, verb((*Server).adminEtcd)},

	admin.VerbOperations:      {front.Timeout, verb((*Server).adminOperations)},
	admin.VerbOperationCancel: {front.Timeout, verb((*Server).adminOperationCancel)},

	admin.VerbHeld:     {front.Timeout, verb((*Server).adminHeld)},
	admin.VerbTakeOver: {front.Timeout, verb((*Server).adminTakeOver)},
}

// verb makes a verb of a handler with typed input and output.
func verb[In, Out any](handler func(*Server, context.Context, front.Call, In) (Out, error)) func(context.Context, *Server, front.Call, []byte) (any, error) {
	return func(ctx context.Context, s *Server, c front.Call, body []byte) (any, error) {
		var in In
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			return nil, admin.NewError(admin.CodeInvalidRequest, "The body cannot be read: "+err.Error()+".", "")
		}
		if decoder.More() {
			return nil, admin.NewError(admin.CodeInvalidRequest, "The body holds more than one JSON value.", "")
		}
		return handler(s, ctx, c, in)
	}
}

// Admin serves the admin API, everything below admin.Path.
func (s *Server) Admin() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := front.RequestID()
		record := s.front.Begin(r, id)
		out, err := s.adminAnswer(r, id, record)
		status, code := http.StatusOK, ""
		if err != nil {
			known := s.adminError(id, err)
			status, code, out = known.Status, known.Code, known
		}
		record.End(status, code)
		text, err := json.Marshal(out)
		if err != nil {
			s.Log.Error("encode answer", "request", id, "error", err)
			status, text = http.StatusInternalServerError, []byte(`{"code":"InternalFailure"}`)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("x-amzn-RequestId", id)
		w.WriteHeader(status)
		w.Write(append(text, '\n'))
	})
}

func (s *Server) adminAnswer(r *http.Request, id string, record *front.Record) (out any, err error) {
	defer s.front.Recover(&err)
	if r.Method != http.MethodPost {
		return nil, &admin.Error{Code: "MethodNotAllowed", Message: "Use the method POST.", Status: http.StatusMethodNotAllowed}
	}
	body, err := s.front.Body(r, record)
	if known, ok := errors.AsType[*wire.Error](err); ok && known.Code == api.ErrRequestEntityTooLarge {
		return nil, admin.NewError(admin.CodeInvalidRequest, "The body cannot be read: "+known.Message, "")
	}
	if err != nil {
		return nil, err
	}
	identity, who, err := s.front.Authenticate(r, body, record)
	if err != nil {
		return nil, err
	}
	if identity.Service != admin.Service {
		return nil, admin.NewError(admin.CodeWrongService, "The call is signed for the service "+identity.Service+".",
			"sign it for the service "+admin.Service)
	}
	name := strings.TrimPrefix(r.URL.Path, admin.Path)
	asksAdmin(record, name, body)
	known, ok := adminVerbs[name]
	if !ok {
		return nil, admin.NewError(admin.CodeUnknownVerb, fmt.Sprintf("There is no verb %q.", name), "")
	}
	c := s.front.Call(r, identity, who, adminAction(name), id, record)
	if err := s.authorizeAdmin(c); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), known.timeout)
	defer cancel()
	return known.do(ctx, s, c, body)
}

// adminError turns any error into one of this API. What nobody expected is logged
// in full, and the caller gets an id to find it by.
func (s *Server) adminError(id string, err error) *admin.Error {
	if known, ok := errors.AsType[*admin.Error](err); ok {
		return known
	}
	known, ok := errors.AsType[*wire.Error](err)
	if !ok {
		known = front.Translate(err)
	}
	if known != nil {
		return &admin.Error{Code: known.Code, Message: known.Message, Hint: known.Hint, Status: known.Status}
	}
	s.Log.Error("admin call failed", "request", id, "error", err)
	return admin.NewError(admin.CodeInternal, "An internal error has occurred.", "see request "+id+" in the log of howdah serve")
}
