package wire

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"howdah/api"
)

// MaxBody is the limit that servers give to ReadRequest: far above any request
// of a real client, the largest being a custom engine's manifest of 51,000
// characters.
const MaxBody = 1 << 20

const formType = "application/x-www-form-urlencoded"

// ReadRequest reads a request of the Query protocol: a POST whose body holds the
// parameters, or a GET with a query string. It returns the action, all
// parameters, and the raw body, which a signature covers. Parameters in the URL
// count for a POST too where the body does not give them. The parameter Version
// is not checked: each service has one version.
//
// What the client did wrong is returned as *Error, together with the body unless
// the fault is the method or the size.
func ReadRequest(r *http.Request, limit int64) (action string, values url.Values, body []byte, err error) {
	if body, err = ReadBody(r, limit); err != nil {
		return "", nil, nil, err
	}
	action, values, err = Parse(r, body)
	return action, values, body, err
}

// Parse is ReadRequest for a body that was read.
func Parse(r *http.Request, body []byte) (action string, values url.Values, err error) {
	if values, err = parseQuery(r.URL.RawQuery); err != nil {
		return "", nil, err
	}
	if r.Method == http.MethodPost {
		if err := addBody(values, r.Header.Get("Content-Type"), body); err != nil {
			return "", nil, err
		}
	}
	if action = values.Get("Action"); action == "" {
		return "", values, NewError(api.ErrMissingAction, "The request must contain the parameter Action.")
	}
	return action, values, nil
}

// ReadBody reads the body of a request of the Query protocol, as it is.
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Method != http.MethodPost && r.Method != http.MethodGet {
		return nil, NewError(api.ErrMethodNotAllowed, "Use the method POST or GET.")
	}
	tooLarge := NewError(api.ErrRequestEntityTooLarge, "The request must not be larger than %d bytes.", limit)
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if _, over := errors.AsType[*http.MaxBytesError](err); over || int64(len(body)) > limit {
		return nil, tooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	return body, nil
}

// addBody puts the body's parameters in the place of the URL's. An absent
// content type passes for a form: hand-written clients leave it out.
func addBody(values url.Values, contentType string, body []byte) error {
	if media, _, _ := mime.ParseMediaType(contentType); contentType != "" && media != formType {
		return NewError(api.ErrUnsupportedMediaType, "The content type must be %s.", formType)
	}
	form, err := parseQuery(string(body))
	if err != nil {
		return err
	}
	maps.Copy(values, form)
	return nil
}

func parseQuery(query string) (url.Values, error) {
	if strings.Count(query, "&") >= maxParameters {
		return nil, NewError(api.ErrMalformedQueryString, "The request must not have more than %d parameters.", maxParameters)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, NewError(api.ErrMalformedQueryString, "The query string contains a syntax error.")
	}
	return values, nil
}
