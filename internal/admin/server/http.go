package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"howdah/api"
	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/host/hostapi"
)

// ServeHTTP answers one request below admin.Path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := front.RequestID()
	record := s.front.Begin(r, id)
	out, err := s.answer(r, id, record)
	stream, size, err := opened(r, out, err)
	status, code := http.StatusOK, ""
	if err != nil {
		known := s.known(id, err)
		status, code, out = known.Status, known.Code, known
	}
	record.End(status, code)
	if stream != nil {
		s.send(w, r, id, stream, size)
		return
	}
	text, err := json.Marshal(out)
	if err != nil {
		s.log.Error("encode answer", "request", id, "error", err)
		status, text = http.StatusInternalServerError, []byte(`{"code":"InternalFailure"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("x-amzn-RequestId", id)
	w.WriteHeader(status)
	w.Write(append(text, '\n'))
}

// opened opens an answer that is not JSON. stream is nil for any other one.
func opened(r *http.Request, out any, failed error) (stream io.ReadCloser, size int64, err error) {
	of, ok := out.(verb.Stream)
	if failed != nil || !ok {
		return nil, 0, failed
	}
	return of.Open(r.Context())
}

// send sends an answer that is not JSON. Whoever gets a part of it only sees no sum.
func (s *Server) send(w http.ResponseWriter, r *http.Request, id string, stream io.ReadCloser, size int64) {
	defer stream.Close()
	w.Header().Set("x-amzn-RequestId", id)
	err := hostapi.SendSummed(r.Context(), w, size, func(_ context.Context, to io.Writer) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{stream}, make([]byte, sendAtOnce))
		return err
	})
	if err != nil {
		s.log.Warn("send data", "request", id, "error", err)
	}
}

// sendAtOnce is how many bytes are kept of what is sent.
const sendAtOnce = 256 << 10

func (s *Server) answer(r *http.Request, id string, record *front.Record) (out any, err error) {
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
	s.asks(record, name, body)
	known, ok := s.verbs[name]
	if !ok {
		return nil, admin.NewError(admin.CodeUnknownVerb, fmt.Sprintf("There is no verb %q.", name), "")
	}
	c := s.front.Call(r, identity, who, verb.Action(name), id, record)
	if err := known.May(c, s.account); err != nil {
		return nil, err
	}
	return known.Do(r.Context(), c, body)
}

// known turns any error into one of this API. An error that nobody expected is logged in full, and
// the caller gets an id by which to find it.
func (s *Server) known(id string, err error) *admin.Error {
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
	s.log.Error("admin call failed", "request", id, "error", err)
	return admin.NewError(admin.CodeInternal, "An internal error has occurred.", "see request "+id+" in the log of howdah serve")
}
