package front

import (
	"encoding/json"
	"net/http"
	"strings"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
)

// AWS's newer services do not speak the query protocol of RDS, but JSON 1.1. The header
// X-Amz-Target names the action, and the body is its input.

const jsonType = "application/x-amz-json-1.1"

// serveJSON answers one request.
func (f *Front) serveJSON(w http.ResponseWriter, r *http.Request, service *Service) {
	id := RequestID()
	record := f.Begin(r, id)
	out, err := f.answerJSON(r, id, service, record)
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("x-amzn-RequestId", id)
	if err == nil {
		record.End(http.StatusOK, "")
		_, _ = w.Write(out)
		return
	}
	known := f.known(service, id, err)
	code, status := jsonCode(known.Code), known.Status
	if status < http.StatusInternalServerError {
		status = http.StatusBadRequest // whatever is wrong with the request
	}
	record.End(status, code)
	w.WriteHeader(status)
	// Some SDKs read the message in one spelling, some in the other.
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": known.Message, "Message": known.Message})
}

// jsonCodes has the names that JSON services have for errors of all services.
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

func (f *Front) answerJSON(r *http.Request, id string, service *Service, record *Record) (out []byte, err error) {
	defer f.Recover(&err)
	body, err := f.Body(r, record)
	if err != nil {
		return nil, err
	}
	if !sigv4.Signed(r) {
		return nil, wire.NewError(api.ErrMissingAuthenticationToken, "The request must be signed.")
	}
	identity, who, err := f.Authenticate(r, body, record)
	if err != nil {
		return nil, err
	}
	action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), service.Target+".")
	if !ok || r.Method != http.MethodPost {
		return nil, wire.NewError(api.ErrInvalidAction, "Send a POST with the header X-Amz-Target: %s.ACTION.", service.Target)
	}
	if !signs(r, "x-amz-target") {
		return nil, wire.NewError(api.ErrIncompleteSignature, "The header X-Amz-Target must be signed.")
	}
	record.Service, record.Action = service.Name, short(action)
	do, ok := service.Actions[action]
	if !ok {
		return nil, service.refuse(action)
	}
	answer, err := f.do(r, do, f.Call(r, identity, who, action, id, record), request{service: service, body: body})
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// signs reports whether the signature covers a header.
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
