package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"howdah/internal/identity/signature"
	"howdah/internal/repository/store"
)

// FuzzTarget checks that no URL names a key that is none, and that whatever a list asks for stays
// within bounds.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"/main/db-1/x", "/main/db-1/../x?a=b", "/main?list-type=2&prefix=db-1/&max-keys=9", "//", "/a/%2e%2e/b", "/a/b?x=1&x=2", "/m?continuation-token=AA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(text)
		if err != nil {
			return
		}
		repository, key, query, err := parseTarget(u)
		if err != nil {
			return
		}
		if repository == "" || strings.Contains(repository, "/") || key != "" && store.CheckKey(key) != nil {
			t.Fatalf("%q names %q in %q", text, key, repository)
		}
		if l, err := parseListing(query); err == nil && (l.Max < 0 || l.Max > store.MaxList) {
			t.Fatalf("%q lists %+v", text, l)
		}
	})
}

// FuzzClaim checks that nobody is let in by a signature that was not made with the secret.
func FuzzClaim(f *testing.F) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	f.Add(signature.Algorithm+" Credential=k/20261124/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="+strings.Repeat("0", 64), "20261124T120000Z", "a=b")
	f.Add("AWS4-HMAC-SHA256 Credential=,,", "x", "%zz")
	f.Fuzz(func(t *testing.T, authorization, date, query string) {
		r := httptest.NewRequest(http.MethodGet, "/main/db-1/x", nil)
		r.URL.RawQuery = query
		r.Header.Set("Authorization", authorization)
		r.Header.Set("X-Amz-Date", date)
		r.Header.Set("X-Amz-Content-Sha256", emptyHash)
		c, err := parseClaim(r, now)
		if err == nil {
			err = c.verify(r, "a secret that nobody knows")
		}
		if _, ok := errors.AsType[*refusal](err); !ok {
			t.Fatalf("let in, or odd: %v", err)
		}
	})
}

// FuzzChunks checks that a body in chunks that is read to its end has the length that was said.
func FuzzChunks(f *testing.F) {
	f.Add("4\r\nsome\r\n0\r\n\r\n", int64(4))
	f.Add("4;x\r\nsome\r\n2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n", int64(6))
	f.Add("ffffffffffffffff\r\n", int64(1))
	f.Add("0\r\n\r\n", int64(0))
	f.Fuzz(func(t *testing.T, text string, length int64) {
		r := httptest.NewRequest(http.MethodPut, "/main/db-1/x", strings.NewReader(text))
		b := &body{chunks: newChunks(r, claim{payload: chunkedUnsigned}, nil), length: length, left: length}
		b.src = b.chunks
		if length < 0 {
			return
		}
		all, err := io.ReadAll(b)
		if err == nil && int64(len(all)) != length {
			t.Fatalf("%d bytes of %d", len(all), length)
		}
	})
}

// FuzzLists checks the two lists that clients send.
func FuzzLists(f *testing.F) {
	f.Add([]byte("<Delete><Object><Key>db-1/x</Key></Object><Quiet>true</Quiet></Delete>"))
	f.Add([]byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"x\"</ETag></Part></CompleteMultipartUpload>"))
	f.Add([]byte("<!DOCTYPE x [<!ENTITY a \"b\">]><Delete/>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if keys, _, err := parseMany(text); err == nil && len(keys) > maxMany+1 {
			t.Fatalf("%d keys", len(keys))
		}
		if parts, err := parseParts(text); err == nil && len(parts) > store.MaxParts+1 {
			t.Fatalf("%d parts", len(parts))
		}
	})
}
