package front

import (
	"bytes"
	"net/http"
	"net/url"
	"sync"

	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
)

// serveQuery answers one request of the query protocol. Before it is proved who calls, the answer
// is in the language of the service that the caller says it is for.
func (f *Front) serveQuery(w http.ResponseWriter, r *http.Request, service *Service) {
	id := RequestID()
	record := f.Begin(r, id)
	answer := answers.Get().(*bytes.Buffer)
	defer answers.Put(answer)
	answer.Reset()
	if err := f.answerQuery(answer, r, id, &service, record); err != nil {
		known := f.known(service, id, err)
		record.End(known.Status, known.Code)
		f.refuse(w, service, id, known)
		return
	}
	record.End(http.StatusOK, "")
	w.Header().Set("Content-Type", wire.ContentType)
	w.Header().Set("x-amzn-RequestId", id)
	w.Write(answer.Bytes())
}

// answers keeps buffers for reuse. A page of instances takes 300 kB.
var answers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// answerQuery writes the answer to a request, or returns an error. service becomes the one that the
// request is for.
func (f *Front) answerQuery(text *bytes.Buffer, r *http.Request, id string, service **Service, record *Record) (err error) {
	defer f.Recover(&err)
	body, err := f.Body(r, record)
	if err != nil {
		return err
	}
	asked, err := f.read(r, body, id, record)
	if err != nil {
		return err
	}
	found, do, err := f.find(asked.service, asked.action)
	if found != nil {
		*service = found
	}
	if err != nil {
		return err
	}
	out, err := f.do(r, do, asked.call, request{service: found, values: asked.values})
	if err != nil {
		return err
	}
	return wire.EncodeResult(text, asked.action, id, out)
}

// asked is what a request of the query protocol asks for.
type asked struct {
	service, action string
	values          url.Values
	call            Call
}

// read finds out who calls, for which action, and of which service, by the signature or by the link
// of a message. It writes both into the record of the call. What is signed is taken apart only when
// its signature was found right.
func (f *Front) read(r *http.Request, body []byte, id string, record *Record) (asked, error) {
	if !sigv4.Signed(r) {
		action, values, err := wire.Parse(r, body)
		if err != nil {
			return asked{}, err
		}
		if link, ok := f.unsigned(r, action, values, id, record); ok {
			return link, nil
		}
	}
	identity, who, err := f.Authenticate(r, body, record)
	if err != nil {
		return asked{}, err
	}
	action, values, err := wire.Parse(r, body)
	if err != nil {
		return asked{}, err
	}
	record.asks(identity.Service, action, values)
	return asked{identity.Service, action, values, f.Call(r, identity, who, action, id, record)}, nil
}

// unsigned returns what a request without a signature asks for, if some service allows it.
func (f *Front) unsigned(r *http.Request, action string, values url.Values, id string, record *Record) (asked, bool) {
	for _, s := range f.order {
		if s.Unsigned == nil {
			continue
		}
		scope, ok := s.Unsigned(action, values)
		if !ok {
			continue
		}
		record.asks(s.Name, action, values)
		return asked{s.Name, action, values, Call{
			Scope: scope, Action: s.Name + ":" + action, Source: sourceOf(r), Secure: r.TLS != nil, ID: id, Now: f.Now().UTC(), Anonymous: true,
			front: f, record: record,
		}}, true
	}
	return asked{}, false
}

// refuse answers with an error.
func (f *Front) refuse(w http.ResponseWriter, service *Service, id string, known *wire.Error) {
	w.Header().Set("Content-Type", wire.ContentType)
	w.Header().Set("x-amzn-RequestId", id)
	w.WriteHeader(known.Status)
	if err := known.EncodeFor(w, service.Contract, id); err != nil {
		f.Log.Debug("answer error", "error", err)
	}
}
