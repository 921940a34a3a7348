package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
)

// AWS's newer services do not speak the query protocol of RDS, but JSON 1.1: the header
// X-Amz-Target names the action, and the body is its input.

const jsonType = "application/x-amz-json-1.1"

// jsonService is one of them.
type jsonService struct {
	name   string // in signatures
	target string // what X-Amz-Target begins with
	// actions decode a request, do it, and answer its output.
	actions map[string]func(ctx context.Context, s *Server, c call, body []byte) (any, error)
	// refused are actions of the service that Howdah has not, and why.
	refused func(action string) error
}

// jsonServices are those that Howdah speaks, by their names in signatures. It is filled by
// their files.
var jsonServices = map[string]*jsonService{}

// serveJSON answers one request.
func (s *Server) serveJSON(w http.ResponseWriter, r *http.Request, service *jsonService) {
	id := requestID()
	record := s.record(r, id)
	out, err := s.answerJSON(r, id, service, record)
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("x-amzn-RequestId", id)
	if err == nil {
		record.end(http.StatusOK, "")
		_, _ = w.Write(out)
		return
	}
	known := s.known(id, err)
	code, status := jsonCode(known.Code), known.Status
	if status < http.StatusInternalServerError {
		status = http.StatusBadRequest // whatever is wrong with the request
	}
	record.end(status, code)
	w.WriteHeader(status)
	// SDKs of some languages read the message in one spelling, some in the other.
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": known.Message, "Message": known.Message})
}

// jsonCodes are the names that JSON services have for errors of all services.
var jsonCodes = map[string]string{
	api.ErrAccessDenied: "AccessDeniedException", api.ErrSignatureDoesNotMatch: "InvalidSignatureException",
	api.ErrInvalidClientTokenID: "UnrecognizedClientException", api.ErrMissingAuthenticationToken: "MissingAuthenticationTokenException",
	api.ErrIncompleteSignature: "IncompleteSignatureException", api.ErrRequestExpired: "RequestExpired",
	api.ErrInternalFailure: "InternalServiceError", api.ErrServiceUnavailable: "ServiceUnavailableException",
	api.ErrInvalidAction: "UnknownOperationException",
}

func jsonCode(code string) string {
	if own, ok := jsonCodes[code]; ok {
		return own
	}
	return code
}

func (s *Server) answerJSON(r *http.Request, id string, service *jsonService, record *record) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	body, err := s.body(r, record)
	if err != nil {
		return nil, err
	}
	if !sigv4.Signed(r) {
		return nil, wire.NewError(api.ErrMissingAuthenticationToken, "The request must be signed.")
	}
	identity, who, err := s.authenticate(r, body, record)
	if err != nil {
		return nil, err
	}
	action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), service.target+".")
	if !ok || r.Method != http.MethodPost {
		return nil, wire.NewError(api.ErrInvalidAction, "Send a POST with the header X-Amz-Target: %s.ACTION.", service.target)
	}
	if !signs(r, "x-amz-target") {
		return nil, wire.NewError(api.ErrIncompleteSignature, "The header X-Amz-Target must be signed.")
	}
	record.Service, record.Action = service.name, action[:min(len(action), maxName)]
	do, ok := service.actions[action]
	if !ok {
		return nil, service.refused(action)
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	c := s.call(r, identity, who, action, id)
	c.record = record // actions note in it what they were asked for
	answer, err := do(ctx, s, c, body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// signs reports whether a header is one of those that the signature covers.
func signs(r *http.Request, header string) bool {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	list, _, _ := strings.Cut(rest, ",")
	for name := range strings.SplitSeq(strings.TrimSpace(list), ";") {
		if name == header {
			return true
		}
	}
	return false
}

// decodeJSON reads an input. What it does not know it leaves alone, as AWS does.
func decodeJSON(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return wire.NewError("SerializationException", "The body of the request is no input of this action: %s", err)
	}
	return nil
}
