package gateway

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"

	"howdah/internal/repository/store"
)

// refusal is an error of S3's protocol.
type refusal struct {
	status        int
	code, message string
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

// Refusals that need no more words.
var (
	errDenied            = &refusal{http.StatusForbidden, "AccessDenied", "This access key may not do that here."}
	errUnknownRepository = &refusal{http.StatusServiceUnavailable, "SlowDown", "The gateway does not have what opens this repository yet: try again."}
	errBusy              = &refusal{http.StatusServiceUnavailable, "SlowDown", "Too many requests are under way: try again."}
	errManyUploads       = &refusal{http.StatusServiceUnavailable, "SlowDown", "Too many uploads have begun and not ended: end or abort some."}
	errUnsigned          = &refusal{http.StatusForbidden, "AccessDenied", "The request must be signed by its Authorization header."}
	errUnknownKey        = &refusal{http.StatusForbidden, "InvalidAccessKeyId", "There is no such access key."}
	errSignature         = &refusal{http.StatusForbidden, "SignatureDoesNotMatch", "The signature is not the one of this request: check the secret and the method of signing."}
	errSkewed            = &refusal{http.StatusForbidden, "RequestTimeTooSkewed", "The request was signed more than 15 minutes before or after now: check the clocks."}
	errHash              = &refusal{http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The body is not the one whose hash is in x-amz-content-sha256."}
	errDigest            = &refusal{http.StatusBadRequest, "BadDigest", "The body is not the one whose checksum was sent."}
	errIncomplete        = &refusal{http.StatusBadRequest, "IncompleteBody", "The body is not as long as its length says."}
	errSlow              = &refusal{http.StatusBadRequest, "RequestTimeout", "The body came too slowly."}
	errLength            = &refusal{http.StatusLengthRequired, "MissingContentLength", "The request must say how long its body is."}
	errTooLarge          = &refusal{http.StatusBadRequest, "EntityTooLarge", "The object is larger than what the gateway stores."}
	errXML               = &refusal{http.StatusBadRequest, "MalformedXML", "The body is not the XML that this request needs."}
	errRange             = &refusal{http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The object ends before the range begins."}
	errPrecondition      = &refusal{http.StatusPreconditionFailed, "PreconditionFailed", "The object is not the one that was asked for."}
	errReplaced          = &refusal{http.StatusPreconditionFailed, "PreconditionFailed", "Somebody else made this object after this access key was told that it is not there."}
	errNotModified       = &refusal{http.StatusNotModified, "NotModified", ""}
)

func malformed(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, "InvalidArgument", fmt.Sprintf(format, args...)}
}

func notDone(what string) *refusal {
	return &refusal{http.StatusNotImplemented, "NotImplemented", "The gateway does not know " + what + "."}
}

// refusalOf returns what to answer. What a repository cannot do now is to be tried again.
func refusalOf(err error, upload bool) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	for _, c := range []struct {
		kind    error
		status  int
		code    string
		message string
	}{
		{store.ErrFull, http.StatusServiceUnavailable, "SlowDown", "The repository is full."},
		{store.ErrReadOnly, http.StatusServiceUnavailable, "SlowDown", "The repository cannot be written to."},
		{store.ErrAway, http.StatusServiceUnavailable, "SlowDown", "The repository is away."},
		{store.ErrName, http.StatusBadRequest, "InvalidObjectName", "No object can have this name in the repository."},
		{store.ErrPart, http.StatusBadRequest, "InvalidPart", "The parts are not those that were sent."},
	} {
		if errors.Is(err, c.kind) {
			return &refusal{c.status, c.code, c.message}
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		if upload {
			return &refusal{http.StatusNotFound, "NoSuchUpload", "There is no such upload."}
		}
		return &refusal{http.StatusNotFound, "NoSuchKey", "There is no such object."}
	}
	return &refusal{http.StatusServiceUnavailable, "SlowDown", "The repository could not do this: see the log of the host's agent."}
}

type errorXML struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Resource  string
	RequestID string `xml:"RequestId"`
}

// xmlNamespace is that of S3's answers.
const xmlNamespace = "http://s3.amazonaws.com/doc/2006-03-01/"

// answerXML writes an answer.
func answerXML(w http.ResponseWriter, status int, value any) {
	text, err := xml.Marshal(value)
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), text...))
}

func (r *refusal) answer(w http.ResponseWriter, req *http.Request, id string) {
	if r.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if req.Method == http.MethodHead || r.status == http.StatusNotModified {
		w.WriteHeader(r.status)
		return
	}
	answerXML(w, r.status, errorXML{Code: r.code, Message: r.message, Resource: req.URL.Path, RequestID: id})
}
