package sigv4

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"howdah/internal/aws/wire"
	"howdah/internal/identity/signature"
)

var (
	testCreds = Credentials{AccessKeyID: "AKIDHOWDAH", SecretAccessKey: "made-up/secret"}
	testBody  = []byte("Action=DescribeDBInstances&Version=2014-10-31")
)

func testLookup(id string) (string, bool) {
	return testCreds.SecretAccessKey, id == testCreds.AccessKeyID
}

// signedRequest returns a request that Verify accepts.
func signedRequest(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://rds.example/", bytes.NewReader(testBody))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	Sign(r, testBody, testCreds, "us-east-1", "rds", signedAt)
	return r
}

func presignedRequest(expires time.Duration) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://rds.example/?Action=DescribeDBInstances", nil)
	Presign(r, testCreds, "us-east-1", "rds", signedAt, expires)
	return r
}

func wantCode(t *testing.T, err error, code string, status int) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != code || e.Status != status {
		t.Errorf("got %v, want %d %s", err, status, code)
	}
}

func TestVerifyRefuses(t *testing.T) {
	edit := func(old, replacement string) func(r *http.Request) {
		return func(r *http.Request) {
			auth := r.Header.Get("Authorization")
			if !strings.Contains(auth, old) {
				panic("nothing to edit: " + old)
			}
			r.Header.Set("Authorization", strings.Replace(auth, old, replacement, 1))
		}
	}
	remove := func(name string) func(r *http.Request) { return func(r *http.Request) { r.Header.Del(name) } }
	tests := []struct {
		name   string
		change func(r *http.Request)
		code   string
		status int
	}{
		{"no signature", remove("Authorization"), "MissingAuthenticationToken", 403},
		{"another algorithm", edit("HMAC-SHA256", "ECDSA-P256-SHA256"), "IncompleteSignature", 400},
		{"basic authentication", func(r *http.Request) { r.SetBasicAuth("a", "b") }, "IncompleteSignature", 400},
		{"empty header", edit(algorithm, "") /* and more follows */, "IncompleteSignature", 400},
		{"algorithm alone", func(r *http.Request) { r.Header.Set("Authorization", algorithm) }, "IncompleteSignature", 400},
		{"no credential", edit("Credential=", "Credentials="), "IncompleteSignature", 400},
		{"no signed headers", edit("SignedHeaders=content-type;host;x-amz-date, ", ""), "IncompleteSignature", 400},
		{"no signature part", func(r *http.Request) {
			auth, _, _ := strings.Cut(r.Header.Get("Authorization"), ", Signature=")
			r.Header.Set("Authorization", auth)
		}, "IncompleteSignature", 400},
		{"credential twice", edit("Credential=", "Credential=a, Credential="), "IncompleteSignature", 400},
		{"two headers", func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) }, "IncompleteSignature", 400},
		{"header and URL", func(r *http.Request) { r.URL.RawQuery = "X-Amz-Signature=a" }, "IncompleteSignature", 400},
		{"scope cut off", edit("/aws4_request", ""), "IncompleteSignature", 400},
		{"another terminator", edit("/aws4_request", "/aws5_request"), "IncompleteSignature", 400},
		{"no access key", edit("Credential=AKIDHOWDAH", "Credential="), "IncompleteSignature", 400},
		{"no region", edit("/us-east-1/", "//"), "IncompleteSignature", 400},
		{"region that is a path", edit("/us-east-1/", "/us..east/"), "IncompleteSignature", 400},
		{"no service", edit("/rds/", "//"), "IncompleteSignature", 400},
		{"short signature", edit("Signature=", "Signature=0"), "IncompleteSignature", 400},
		{"signature in capitals", func(r *http.Request) {
			auth, signature, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", auth+"Signature="+strings.ToUpper(signature))
		}, "IncompleteSignature", 400},
		{"headers out of order", edit("content-type;host", "host;content-type"), "IncompleteSignature", 400},
		{"header twice", edit("content-type;host", "content-type;host;host"), "IncompleteSignature", 400},
		{"header in capitals", edit("content-type;host", "Content-Type;host"), "IncompleteSignature", 400},
		{"no date", remove("X-Amz-Date"), "IncompleteSignature", 400},
		{"malformed date", func(r *http.Request) { r.Header.Set("X-Amz-Date", "2026-11-21") }, "IncompleteSignature", 400},
		{"malformed query", func(r *http.Request) { r.URL.RawQuery = "a=%zz" }, "MalformedQueryString", 404},

		{"unknown key", edit("Credential=AKIDHOWDAH", "Credential=AKIDOTHER"), "InvalidClientTokenId", 403},

		{"another day in the scope", edit("/20261121/", "/20261120/"), "SignatureDoesNotMatch", 403},
		{"another region", edit("/us-east-1/", "/us-east-2/"), "SignatureDoesNotMatch", 403},
		{"another service", edit("/rds/", "/sns/"), "SignatureDoesNotMatch", 403},
		{"another signature", func(r *http.Request) {
			auth, _, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", auth+"Signature="+strings.Repeat("0", 64))
		}, "SignatureDoesNotMatch", 403},
		{"another date, same day", func(r *http.Request) { r.Header.Set("X-Amz-Date", "20261121T011836Z") }, "SignatureDoesNotMatch", 403},
		{"host not signed", edit("content-type;host;", "content-type;"), "SignatureDoesNotMatch", 403},
		{"X-Amz header not signed", edit(";x-amz-date", ""), "SignatureDoesNotMatch", 403},
		{"X-Amz header added", func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", "x") }, "SignatureDoesNotMatch", 403},
		{"signed header taken away", remove("Content-Type"), "SignatureDoesNotMatch", 403},
		{"header listed, not there", edit("x-amz-date", "x-amz-date;x-b"), "SignatureDoesNotMatch", 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := signedRequest()
			if _, err := Verify(r, testBody, testLookup, signedAt); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			tt.change(r)
			_, err := Verify(r, testBody, testLookup, signedAt)
			wantCode(t, err, tt.code, tt.status)
		})
	}
}

func TestVerifyBodyHash(t *testing.T) {
	tests := []struct {
		name, hash string
		ok         bool
	}{
		{"right", signature.Hash(testBody), true},
		{"of another body", signature.Hash(nil), false},
		{"unsigned", "UNSIGNED-PAYLOAD", false},
		{"streaming", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Verify(signedRequest("X-Amz-Content-Sha256", tt.hash), testBody, testLookup, signedAt)
			if tt.ok && err != nil {
				t.Error(err)
			}
			if !tt.ok {
				wantCode(t, err, "SignatureDoesNotMatch", 403)
			}
		})
	}
}

func TestVerifyClock(t *testing.T) {
	tests := []struct {
		name    string
		request *http.Request
		after   time.Duration
		ok      bool
	}{
		{"in time", signedRequest(), 0, true},
		{"as old as allowed", signedRequest(), 15 * time.Minute, true},
		{"too old", signedRequest(), 15*time.Minute + time.Second, false},
		{"as early as allowed", signedRequest(), -15 * time.Minute, true},
		{"too early", signedRequest(), -15*time.Minute - time.Second, false},
		{"presigned, alive", presignedRequest(time.Minute), time.Minute, true},
		{"presigned, expired", presignedRequest(time.Minute), time.Minute + time.Second, false},
		{"presigned for a week, alive", presignedRequest(MaxExpires), MaxExpires, true},
		{"presigned for a week, expired", presignedRequest(MaxExpires), MaxExpires + time.Second, false},
		{"presigned, early", presignedRequest(MaxExpires), -15 * time.Minute, true},
		{"presigned, too early", presignedRequest(MaxExpires), -16 * time.Minute, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := testBody
			if tt.request.Method == http.MethodGet {
				body = nil
			}
			_, err := Verify(tt.request, body, testLookup, signedAt.Add(tt.after))
			if tt.ok && err != nil {
				t.Error(err)
			}
			if !tt.ok {
				wantCode(t, err, "RequestExpired", 400)
			}
		})
	}
}

func TestVerifyPresignedRefuses(t *testing.T) {
	tests := []struct {
		name   string
		set    string // parameter=value; an empty value removes it
		code   string
		status int
	}{
		{name: "longer than a week", set: "X-Amz-Expires=604801", code: "IncompleteSignature", status: 400},
		{name: "no time", set: "X-Amz-Expires=0", code: "IncompleteSignature", status: 400},
		{name: "negative time", set: "X-Amz-Expires=-1", code: "IncompleteSignature", status: 400},
		{name: "more time than signed", set: "X-Amz-Expires=61", code: "SignatureDoesNotMatch", status: 403},
		{name: "another algorithm", set: "X-Amz-Algorithm=AWS4", code: "IncompleteSignature", status: 400},
		{name: "no algorithm", set: "X-Amz-Algorithm=", code: "IncompleteSignature", status: 400},
		{name: "no credential", set: "X-Amz-Credential=", code: "IncompleteSignature", status: 400},
		{name: "no date", set: "X-Amz-Date=", code: "IncompleteSignature", status: 400},
		{name: "another date", set: "X-Amz-Date=20261121T011836Z", code: "SignatureDoesNotMatch", status: 403},
		{name: "host not signed", set: "X-Amz-SignedHeaders=accept", code: "SignatureDoesNotMatch", status: 403},
		{name: "no signature", set: "X-Amz-Signature=", code: "IncompleteSignature", status: 400},
		{name: "another action", set: "Action=DeleteDBInstance", code: "SignatureDoesNotMatch", status: 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := presignedRequest(time.Minute)
			query := r.URL.Query()
			name, value, _ := strings.Cut(tt.set, "=")
			query.Set(name, value)
			if value == "" {
				query.Del(name)
			}
			r.URL.RawQuery = query.Encode()
			_, err := Verify(r, nil, testLookup, signedAt)
			wantCode(t, err, tt.code, tt.status)
		})
	}
}

// A key must not be looked up for a request that cannot be genuine.
func TestVerifyLooksUpLast(t *testing.T) {
	never := func(string) (string, bool) { t.Error("looked up"); return "", false }
	r := signedRequest()
	if _, err := Verify(r, testBody, never, signedAt.Add(time.Hour)); err == nil {
		t.Error("accepted")
	}
	r.Header.Del("X-Amz-Date")
	if _, err := Verify(r, testBody, never, signedAt); err == nil {
		t.Error("accepted")
	}
}

// resign signs the request as a client with habits of its own would: it covers
// the headers given, in the scope given.
func resign(r *http.Request, s scope, signed ...string) {
	signature := s.Signature(testCreds.SecretAccessKey, signedAt, signature.Canonical(r, canonicalPath(r.URL), "", signed, signature.Hash(testBody)))
	r.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s,SignedHeaders=%s,Signature=%s",
		algorithm, testCreds.AccessKeyID, s, strings.Join(signed, ";"), signature))
}

func TestVerifyDateHeader(t *testing.T) {
	for _, layout := range []string{http.TimeFormat, timeLayout} {
		r := signedRequest()
		r.Header.Del("X-Amz-Date")
		r.Header.Set("Date", signedAt.Format(layout))
		resign(r, scope{Date: "20261121", Region: "us-east-1", Service: "rds"}, "content-type", "date", "host")
		if _, err := Verify(r, testBody, testLookup, signedAt); err != nil {
			t.Errorf("%s: %v", layout, err)
		}
	}
}

// A right signature is not enough if it leaves out what it must cover.
func TestVerifyRefusesNarrowSignatures(t *testing.T) {
	today := scope{Date: "20261121", Region: "us-east-1", Service: "rds"}
	tests := []struct {
		name   string
		scope  scope
		signed []string
		ok     bool
	}{
		{"all", today, []string{"content-type", "host", "x-amz-date"}, true},
		{"no content type", today, []string{"host", "x-amz-date"}, true},
		{"no host", today, []string{"content-type", "x-amz-date"}, false},
		{"no date", today, []string{"content-type", "host"}, false},
		{"scope of yesterday", scope{Date: "20261120", Region: "us-east-1", Service: "rds"}, []string{"host", "x-amz-date"}, false},
		{"a header that is not there", today, []string{"host", "x-amz-date", "x-other"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := signedRequest()
			resign(r, tt.scope, tt.signed...)
			_, err := Verify(r, testBody, testLookup, signedAt)
			if tt.ok && err != nil {
				t.Error(err)
			}
			if !tt.ok {
				wantCode(t, err, "SignatureDoesNotMatch", 403)
			}
		})
	}
}

// The Go SDK signs content-length and headers of its own.
func TestVerifyGoSDK(t *testing.T) {
	signer := v4.NewSigner()
	creds := aws.Credentials{AccessKeyID: testCreds.AccessKeyID, SecretAccessKey: testCreds.SecretAccessKey, SessionToken: "made-up"}
	for _, body := range []string{string(testBody), "", "\x00\xff"} {
		verified := errors.New("not reached")
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			raw, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			_, verified = Verify(r, raw, testLookup, time.Now())
		}))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/a b/%C3%A9?b=2&a=1+2", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Amz-Sdk-Invocation-Id", "1  2")
		if err := signer.SignHTTP(t.Context(), creds, r, signature.Hash([]byte(body)), "rds", "us-east-1", time.Now()); err != nil {
			t.Fatal(err)
		}
		if body != "" && !strings.Contains(r.Header.Get("Authorization"), "content-length") {
			t.Error("the SDK does not sign content-length any more")
		}
		answer, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		server.Close()
		if verified != nil {
			t.Errorf("%q: %v", body, verified)
		}
	}
}

// The Go SDK presigns without X-Amz-Expires unless the caller sets it.
func TestVerifyGoSDKPresigned(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "http://sts.example/?Action=GetCallerIdentity&Version=2011-06-15", nil)
	creds := aws.Credentials{AccessKeyID: testCreds.AccessKeyID, SecretAccessKey: testCreds.SecretAccessKey}
	signed, _, err := v4.NewSigner().PresignHTTP(context.Background(), creds, r, signature.Hash(nil), "sts", "us-east-1", signedAt)
	if err != nil {
		t.Fatal(err)
	}
	got := httptest.NewRequest(http.MethodGet, signed, nil)
	if got.URL.Query().Has("X-Amz-Expires") {
		t.Error("the SDK sets X-Amz-Expires now")
	}
	if _, err := Verify(got, nil, testLookup, signedAt.Add(15*time.Minute)); err != nil {
		t.Error(err)
	}
	_, err = Verify(got, nil, testLookup, signedAt.Add(15*time.Minute+time.Second))
	wantCode(t, err, "RequestExpired", 400)
}

// Neither messages nor logs may hold the secret, or the signature that it makes.
func TestSecretsStaySecret(t *testing.T) {
	secret := Credentials{AccessKeyID: "AKIDHOWDAH", SecretAccessKey: "hunter2", SessionToken: "hunter3"}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("a", "creds", secret, "in", []Credentials{secret}, "pointer", &secret)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("a", "creds", secret, "in", []Credentials{secret}, "pointer", &secret)
	fmt.Fprintf(&logged, "%v %+v %#v %s %v", secret, secret, secret, secret, struct{ C Credentials }{secret})
	if strings.Contains(logged.String(), "hunter") || !strings.Contains(logged.String(), "AKIDHOWDAH") {
		t.Errorf("logged %s", logged.String())
	}
	r := signedRequest()
	_, right, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
	r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), right, strings.Repeat("1", 64), 1))
	_, err := Verify(r, testBody, testLookup, signedAt)
	if err == nil || strings.Contains(err.Error(), right) || strings.Contains(err.Error(), testCreds.SecretAccessKey) {
		t.Errorf("got %v", err)
	}
}

func TestSignAgain(t *testing.T) {
	r := signedRequest()
	Sign(r, testBody, testCreds, "us-east-1", "rds", signedAt.Add(time.Hour))
	if _, err := Verify(r, testBody, testLookup, signedAt.Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestCanonicalQuery(t *testing.T) {
	tests := map[string]string{
		"":                      "",
		"&&":                    "",
		"b=2&a=1":               "a=1&b=2",
		"a=b&a=a&a":             "a=&a=a&a=b",
		"a=1+2%203":             "a=1%202%203",
		"a-=1&a=2":              "a=2&a-=1",
		"%41=%7e%2f&skip=1&s=":  "A=~%2F&s=",
		"a=b=c":                 "a=b%3Dc",
		"sk%69p=1&skipped=2":    "skipped=2",
		url.Values{}.Encode():   "",
		"a=\u00e9&a=%C3%A9%0a*": "a=%C3%A9&a=%C3%A9%0A%2A",
	}
	for raw, want := range tests {
		if got, ok := signature.Query(raw, "skip"); !ok || got != want {
			t.Errorf("%s became %s, not %s", raw, got, want)
		}
	}
	if got, ok := signature.Query("a=%z", ""); ok {
		t.Errorf("a malformed escape became %s", got)
	}
}
