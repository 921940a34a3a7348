package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/aws/wire"
)

func TestReadRequest(t *testing.T) {
	const form = "application/x-www-form-urlencoded; charset=utf-8"
	tests := []struct {
		name, method, target, contentType, body string
		want                                    url.Values // without Action=A
		code                                    string
		status                                  int
	}{
		{name: "post", method: "POST", target: "/", contentType: form, body: "Action=A&B=1+2", want: url.Values{"B": {"1 2"}}},
		{name: "post as the Go SDK does", method: "POST", target: "/", contentType: "application/x-www-form-urlencoded", body: "Action=A"},
		{name: "no content type", method: "POST", target: "/", body: "Action=A"},
		{name: "content type in capitals, bad parameter", method: "POST", target: "/", contentType: "Application/X-WWW-Form-Urlencoded; x", body: "Action=A"},
		{name: "get", method: "GET", target: "/?Action=A&B=%C3%A9", want: url.Values{"B": {"é"}}},
		{name: "post with a query", method: "POST", target: "/?Action=B&C=1&D=2", contentType: form, body: "Action=A&C=3", want: url.Values{"C": {"3"}, "D": {"2"}}},
		{name: "post with all in the query", method: "POST", target: "/?Action=A&Version=any"},
		{name: "as large as allowed", method: "POST", target: "/", body: "Action=A&B=" + strings.Repeat("x", 100-11), want: url.Values{"B": {strings.Repeat("x", 89)}}},

		{name: "too large", method: "POST", target: "/", body: "Action=A&B=" + strings.Repeat("x", 90), code: "RequestEntityTooLarge", status: 413},
		{name: "no action", method: "POST", target: "/", contentType: form, body: "B=1", code: "MissingAction", status: 400},
		{name: "empty action", method: "GET", target: "/?Action=", code: "MissingAction", status: 400},
		{name: "nothing", method: "GET", target: "/", code: "MissingAction", status: 400},
		{name: "bad escape in the body", method: "POST", target: "/", contentType: form, body: "Action=A&B=%zz", code: "MalformedQueryString", status: 404},
		{name: "bad escape in the query", method: "GET", target: "/?Action=A&B=%zz", code: "MalformedQueryString", status: 404},
		{name: "json", method: "POST", target: "/", contentType: "application/json", body: "{}", code: "UnsupportedMediaType", status: 415},
		{name: "put", method: "PUT", target: "/?Action=A", code: "MethodNotAllowed", status: 405},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body))
			r.Header.Set("Content-Type", tt.contentType)
			action, values, body, err := wire.ReadRequest(r, 100)
			if tt.code != "" {
				var e *wire.Error
				if !errors.As(err, &e) || e.Code != tt.code || e.Status != tt.status {
					t.Fatalf("got %v, want %s", err, tt.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			delete(values, "Action")
			delete(values, "Version")
			if action != "A" || string(body) != tt.body || cmp.Diff(tt.want, values) != "" && len(tt.want)+len(values) > 0 {
				t.Errorf("action %s, body %q, values %v", action, body, values)
			}
		})
	}
}

// A body without a length must not be read beyond the limit.
func TestReadRequestStopsAtTheLimit(t *testing.T) {
	endless := &countingReader{}
	r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(endless))
	r.ContentLength = -1
	_, _, _, err := wire.ReadRequest(r, 1000)
	var e *wire.Error
	if !errors.As(err, &e) || e.Status != http.StatusRequestEntityTooLarge || endless.n > 1<<16 {
		t.Errorf("got %v after %d bytes", err, endless.n)
	}
	r = httptest.NewRequest(http.MethodPost, "/", io.NopCloser(&countingReader{}))
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 10)
	if _, _, _, err = wire.ReadRequest(r, 1000); !errors.As(err, &e) || e.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %v", err)
	}
}

type countingReader struct{ n int }

func (r *countingReader) Read(p []byte) (int, error) {
	r.n += len(p)
	return copy(p, bytes.Repeat([]byte("a"), len(p))), nil
}

func TestReadRequestCountsParameters(t *testing.T) {
	body := strings.Repeat("a=&", 9_999) + "Action=A"
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if _, _, _, err := wire.ReadRequest(r, wire.MaxBody); err != nil {
		t.Errorf("10,000 parameters: %v", err)
	}
	var e *wire.Error
	r = httptest.NewRequest(http.MethodPost, "/", strings.NewReader("b=&"+body))
	if _, _, _, err := wire.ReadRequest(r, wire.MaxBody); !errors.As(err, &e) || e.Code != "MalformedQueryString" {
		t.Errorf("10,001 parameters: %v", err)
	}
}

func TestReadRequestPassesOnTransportErrors(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(brokenReader{}))
	_, _, _, err := wire.ReadRequest(r, wire.MaxBody)
	var e *wire.Error
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
