package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/stranger"
)

// watchedBody tells how much of it was read.
type watchedBody struct {
	io.Reader
	read int
	err  error // in place of its end
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	if err != nil && b.err != nil {
		err = b.err
	}
	return n, err
}

func (b *watchedBody) Close() error { return nil }

// TestBodiesOfStrangers: of a body no byte is read before all else was found to be right
// that can be checked without it, and what has no signature may be small only.
func TestBodiesOfStrangers(t *testing.T) {
	u := newWorld(t).user(t)
	form := "Action=DescribeDBInstances&Version=2014-10-31"
	large := form + "&X=" + strings.Repeat("a", 100<<10)
	for name, test := range map[string]struct {
		text   string
		key    string // "": not signed
		change func(r *http.Request)
		code   string
		read   bool
	}{
		"a good one":                  {form, u.key, nil, "", true},
		"a key that there is none of": {large, "NOSUCHKEY", nil, "InvalidClientTokenId", false},
		"no signature":                {large, "", nil, "MissingAuthenticationToken", false},
		"no signature, in chunks":     {large, "", func(r *http.Request) { r.ContentLength = -1 }, "RequestEntityTooLarge", true},
		"no signature, and small":     {form, "", nil, "MissingAuthenticationToken", true},
		"half a signature":            {large, u.key, func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x") }, "IncompleteSignature", false},
		"an old one":                  {large, u.key, func(r *http.Request) { r.Header.Set("X-Amz-Date", "20200101T000000Z") }, "SignatureDoesNotMatch", false},
		"a header that is not signed": {large, u.key, func(r *http.Request) { r.Header.Set("X-Amz-Other", "x") }, "SignatureDoesNotMatch", false},
		"another body":                {large, u.key, func(r *http.Request) { r.Header.Set("Content-Type", "x") }, "SignatureDoesNotMatch", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", nil)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			body := &watchedBody{Reader: strings.NewReader(test.text)}
			r.Body, r.ContentLength = body, int64(len(test.text))
			if test.key != "" {
				sigv4.Sign(r, []byte(test.text), sigv4.Credentials{AccessKeyID: test.key, SecretAccessKey: u.secret}, u.region, "rds", u.now())
			}
			if test.change != nil {
				test.change(r)
			}
			answer := httptest.NewRecorder()
			u.server.ServeHTTP(answer, r)
			if test.code == "" && answer.Code != http.StatusOK || test.code != "" && !strings.Contains(answer.Body.String(), "<Code>"+test.code+"</Code>") {
				t.Errorf("%d %s, want %s", answer.Code, answer.Body, test.code)
			}
			if (body.read > 0) != test.read || test.key == "" && body.read > 9<<10 {
				t.Errorf("%d bytes of the body were read", body.read)
			}
		})
	}
}

// TestBodiesThatDoNotCome: what goes wrong with a body is the caller's, or tells to try
// again, and is no error in the log.
func TestBodiesThatDoNotCome(t *testing.T) {
	u := newWorld(t).user(t)
	for code, cause := range map[string]error{"ServiceUnavailable": stranger.ErrFull, "RequestExpired": errors.New("i/o timeout")} {
		text := []byte("Action=DescribeDBInstances")
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", nil)
		sigv4.Sign(r, text, sigv4.Credentials{AccessKeyID: u.key, SecretAccessKey: u.secret}, u.region, "rds", u.now())
		r.Body = &watchedBody{Reader: bytes.NewReader(text[:5]), err: cause}
		answer := httptest.NewRecorder()
		u.server.ServeHTTP(answer, r)
		if !strings.Contains(answer.Body.String(), "<Code>"+code+"</Code>") {
			t.Errorf("%s, want %s", answer.Body, code)
		}
	}
	if strings.Contains(u.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log tells of errors: %s", u.log)
	}
}
