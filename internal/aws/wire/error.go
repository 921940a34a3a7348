package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"howdah/api"
)

// Error is an error as a client sees it. Code decides which exception an SDK
// raises; Status is the HTTP status; Hint, which may be empty, says what the
// user can do about it and travels in an element that SDKs skip.
type Error struct {
	Code    string
	Message string
	Status  int
	Hint    string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// NewError returns the error of that code, with the HTTP status that the
// service models give it. A code that no model has gets 400: a client must never
// be told to retry what is its own fault.
func NewError(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: statusOf(code)}
}

// WithHint returns a copy of e with that hint.
func (e *Error) WithHint(hint string) *Error {
	hinted := *e
	hinted.Hint = hint
	return &hinted
}

// AsError returns the Error that err is or wraps. Any other error becomes
// InternalFailure and its text is left out: it may name what a client must not
// see, so the caller logs err.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return NewError(api.ErrInternalFailure, "The request failed because of an internal error.")
}

// Encode writes the error as an ErrorResponse document of the service with
// that namespace.
func (e *Error) Encode(w io.Writer, xmlns, requestID string) error {
	kind := "Sender"
	if e.Status >= http.StatusInternalServerError {
		kind = "Receiver"
	}
	b := append([]byte(nil), `<ErrorResponse xmlns="`...)
	b = append(b, xmlns...)
	b = append(b, `"><Error>`...)
	b = appendElement(b, "Type", kind)
	b = appendElement(b, "Code", e.Code)
	b = appendElement(b, "Message", e.Message)
	if e.Hint != "" {
		b = appendElement(b, "Hint", e.Hint)
	}
	b = append(b, "</Error>"...)
	b = appendElement(b, "RequestId", requestID)
	b = append(b, "</ErrorResponse>"...)
	_, err := w.Write(b)
	return err
}

// EncodeFor writes the error as the service writes its own.
func (e *Error) EncodeFor(w io.Writer, s *api.Service, requestID string) error {
	if s.Protocol != api.EC2 {
		return e.Encode(w, s.XMLNS, requestID)
	}
	b := append([]byte(nil), "<Response><Errors><Error>"...)
	b = appendElement(b, "Code", e.Code)
	b = appendElement(b, "Message", e.Message)
	b = append(b, "</Error></Errors>"...)
	b = appendElement(b, "RequestID", requestID)
	b = append(b, "</Response>"...)
	_, err := w.Write(b)
	return err
}

func statusOf(code string) int {
	if status, ok := api.CommonErrors[code]; ok {
		return status
	}
	for _, s := range services {
		if status, ok := s.Errors[code]; ok {
			return status
		}
	}
	return http.StatusBadRequest
}
