package sigv4

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/aws/wire"
)

// FuzzParseAuthorization checks that any header parses or is answered with an
// error of the API, and that what was parsed means the same when written again.
func FuzzParseAuthorization(f *testing.F) {
	f.Add(signedRequest().Header.Get("Authorization"))
	for _, v := range readVectors(f) {
		r, _ := v.request(f)
		f.Add(r.Header.Get("Authorization"))
	}
	f.Add(algorithm + " Credential=a/b/c/d/aws4_request,SignedHeaders=a;b,Signature=" + strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, header string) {
		c, err := parseAuthorization(header)
		if err != nil {
			if e, ok := errors.AsType[*wire.Error](err); !ok || e.Status != http.StatusBadRequest {
				t.Fatalf("not an error of the API: %v", err)
			}
			return
		}
		again, err := parseAuthorization(algorithm + " Credential=" + c.accessKeyID + "/" + c.scope.String() +
			", SignedHeaders=" + strings.Join(c.signed, ";") + ", Signature=" + c.signature)
		if err != nil {
			t.Fatalf("written again: %v", err)
		}
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(claim{}, scope{})); diff != "" {
			t.Fatalf("the claim changed when written again:\n%s", diff)
		}
	})
}

// FuzzVerify checks that nothing but the signed request is accepted, wherever
// its parts come from.
func FuzzVerify(f *testing.F) {
	signed, presigned := signedRequest(), presignedRequest(MaxExpires)
	f.Add(signed.Header.Get("Authorization"), signed.Header.Get("X-Amz-Date"), "", "")
	f.Add("", "", presigned.URL.RawQuery, "")
	f.Add(signed.Header.Get("Authorization"), "20261121T011836Z", "a=b;c&%zz", "x")
	f.Fuzz(func(t *testing.T, authorization, date, query, contentHash string) {
		r := signedRequest()
		r.URL.RawQuery = query
		for name, value := range map[string]string{"Authorization": authorization, "X-Amz-Date": date, "X-Amz-Content-Sha256": contentHash} {
			if r.Header.Del(name); value != "" {
				r.Header.Set(name, value)
			}
		}
		who, err := Verify(r, testBody, testLookup, signedAt)
		if err == nil && !sameClaim(t, authorization, signed) || err == nil && (date != signed.Header.Get("X-Amz-Date") || contentHash != "") {
			t.Fatalf("accepted as %+v", who)
		}
		if _, ok := errors.AsType[*wire.Error](err); err != nil && !ok {
			t.Fatalf("not an error of the API: %v", err)
		}
	})
}

// sameClaim reports whether the header says what that of the request says.
func sameClaim(t *testing.T, authorization string, r *http.Request) bool {
	got, err := parseAuthorization(authorization)
	if err != nil {
		return false
	}
	want, err := parseAuthorization(r.Header.Get("Authorization"))
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(want, got, cmp.AllowUnexported(claim{}, scope{}))
}
