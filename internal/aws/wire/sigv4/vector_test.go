package sigv4

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// vector is a request that another implementation has signed. The files in
// testdata hold its facts, a line ----, and the request as it went on the wire.
type vector struct {
	name, signer        string
	accessKeyID, secret string
	region, service     string
	wire                string
}

// signedAt is when all vectors were signed.
var signedAt = time.Date(2026, 11, 21, 1, 18, 35, 0, time.UTC)

func readVectors(t testing.TB) []vector {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) < 14 {
		t.Fatalf("found %d vectors, %v", len(paths), err)
	}
	var vectors []vector
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		facts, raw, ok := strings.Cut(string(text), "----\n")
		v := vector{name: strings.TrimSuffix(filepath.Base(path), ".txt"), wire: raw}
		for line := range strings.Lines(facts) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			first, second, _ := strings.Cut(value, " ")
			switch key {
			case "signer":
				v.signer = value
			case "key":
				v.accessKeyID, v.secret = first, second
			case "scope":
				v.region, v.service = first, second
			}
		}
		if !ok || v.signer == "" || v.secret == "" || v.service == "" {
			t.Fatalf("%s is no vector: %+v", path, v)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

// request returns the vector's request as a server sees it, and its body. A
// database token is a URL without scheme, not a request.
func (v vector) request(t testing.TB) (*http.Request, []byte) {
	t.Helper()
	if v.service == "rds-db" {
		r, err := http.NewRequest(http.MethodGet, "https://"+strings.TrimSpace(v.wire), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r, nil
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(v.wire)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, body
}

// lookup knows the vector's key only.
func (v vector) lookup(accessKeyID string) (string, bool) {
	return v.secret, accessKeyID == v.accessKeyID
}

func TestVectorsVerify(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.name, func(t *testing.T) {
			r, body := v.request(t)
			got, err := Verify(r, body, v.lookup, signedAt.Add(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if want := (Identity{v.accessKeyID, v.region, v.service}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// Whatever part of a signed request is changed, it is no longer accepted.
func TestVectorsDetectChanges(t *testing.T) {
	changes := map[string]func(r *http.Request, body []byte) []byte{
		"method": func(r *http.Request, body []byte) []byte { r.Method = "PUT"; return body },
		"path":   func(r *http.Request, body []byte) []byte { r.URL.Path += "x"; r.URL.RawPath = ""; return body },
		"query":  func(r *http.Request, body []byte) []byte { r.URL.RawQuery += "&x=1"; return body },
		"host":   func(r *http.Request, body []byte) []byte { r.Host += "x"; return body },
		"body":   func(_ *http.Request, body []byte) []byte { return append([]byte("x"), body...) },
		"header": func(r *http.Request, body []byte) []byte { r.Header.Set("X-Amz-Target", "x"); return body },
		"secret": nil,
	}
	for _, v := range readVectors(t) {
		for name, change := range changes {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				r, body := v.request(t)
				if change == nil {
					v.secret += "x"
				} else {
					body = change(r, body)
				}
				if who, err := Verify(r, body, v.lookup, signedAt); err == nil {
					t.Errorf("accepted as %+v", who)
				} else {
					wantCode(t, err, "SignatureDoesNotMatch", 403)
				}
			})
		}
	}
}

// Sign writes, for the same headers, the signature that botocore wrote.
func TestVectorsSign(t *testing.T) {
	n := 0
	for _, v := range readVectors(t) {
		r, body := v.request(t)
		want := r.Header.Get("Authorization")
		if want == "" || strings.Contains(want, "x-other") || strings.Contains(want, "x-amzn") || strings.Contains(want, "smithy") {
			continue // presigned, or signs headers that Sign leaves out
		}
		n++
		t.Run(v.name, func(t *testing.T) {
			creds := Credentials{v.accessKeyID, v.secret, r.Header.Get("X-Amz-Security-Token")}
			r.Header.Del("X-Amz-Date")
			Sign(r, body, creds, v.region, v.service, signedAt.In(time.FixedZone("", 3600)))
			if got := r.Header.Get("Authorization"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	if n < 7 {
		t.Errorf("only %d vectors signed", n)
	}
}

// Presign writes the URL that botocore wrote.
func TestVectorsPresign(t *testing.T) {
	n := 0
	for _, v := range readVectors(t) {
		r, _ := v.request(t)
		want := r.URL.Query()
		if !want.Has("X-Amz-Signature") {
			continue
		}
		n++
		t.Run(v.name, func(t *testing.T) {
			creds := Credentials{v.accessKeyID, v.secret, want.Get("X-Amz-Security-Token")}
			lives, err := time.ParseDuration(want.Get("X-Amz-Expires") + "s")
			if err != nil {
				t.Fatal(err)
			}
			kept := r.URL.Query()
			for name := range want {
				if strings.HasPrefix(name, "X-Amz-") {
					kept.Del(name)
				}
			}
			r.URL.RawQuery = kept.Encode()
			Presign(r, creds, v.region, v.service, signedAt, lives)
			if got := r.URL.Query().Get("X-Amz-Signature"); got != want.Get("X-Amz-Signature") {
				t.Errorf("another signature: %s", r.URL)
			}
		})
	}
	if n < 4 {
		t.Errorf("only %d vectors signed", n)
	}
}
