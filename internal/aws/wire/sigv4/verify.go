package sigv4

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/signature"
)

// Verify returns who signed the request. body is the raw body, read before any
// parsing. lookup returns the secret of an access key, and false if there is no
// such key; Verify never calls it for a request that is malformed or too old.
//
// Every error is a *wire.Error: MissingAuthenticationToken for an unsigned
// request, IncompleteSignature for a malformed one, RequestExpired,
// InvalidClientTokenId for an unknown key, and SignatureDoesNotMatch.
//
// An IAM token for a database is a presigned URL without its scheme: verify
// http.NewRequest("GET", "https://"+token, nil).
func Verify(req *http.Request, body []byte, lookup func(accessKeyID string) (secret string, ok bool), now time.Time) (Identity, error) {
	c, err := checkClaim(req, now)
	if err != nil {
		return Identity{}, err
	}
	bodyHash, err := signedHash(req, body)
	if err != nil {
		return Identity{}, err
	}
	skip := ""
	if c.presigned {
		skip = "X-Amz-Signature"
	}
	query, ok := signature.Query(req.URL.RawQuery, skip)
	if !ok {
		return Identity{}, wire.NewError(api.ErrMalformedQueryString, "The query string contains a syntax error.")
	}
	secret, ok := lookup(c.accessKeyID)
	if !ok {
		return Identity{}, NoSuchKey()
	}
	want := c.scope.Signature(secret, c.at, signature.Canonical(req, canonicalPath(req.URL), query, c.signed, bodyHash))
	if subtle.ConstantTimeCompare([]byte(want), []byte(c.signature)) != 1 {
		return Identity{}, mismatch("The signature is not the one of this request: check the secret access key, the host name and the method of signing.")
	}
	return Identity{AccessKeyID: c.accessKeyID, Region: c.scope.Region, Service: c.scope.Service}, nil
}

// NoSuchKey returns the error for an access key that does not exist.
func NoSuchKey() *wire.Error {
	return wire.NewError(api.ErrInvalidClientTokenID, "The access key of the request does not exist.")
}

// Check refuses a request that Verify would refuse whatever its body is, with the same
// errors: before the body is read. accessKeyID is claimed, and not proved.
func Check(req *http.Request, now time.Time) (accessKeyID string, err error) {
	c, err := checkClaim(req, now)
	return c.accessKeyID, err
}

// checkClaim checks everything that can be checked without the body and the secret.
func checkClaim(req *http.Request, now time.Time) (claim, error) {
	c, err := readClaim(req)
	if err != nil {
		return claim{}, err
	}
	if err := c.checkTime(now); err != nil {
		return claim{}, err
	}
	return c, c.checkHeaders(req)
}

// checkTime refuses what is too old, comes from the future, or carries a scope
// of another day.
func (c claim) checkTime(now time.Time) error {
	if c.scope.Date != c.at.Format(dateLayout) {
		return mismatch("The date of the Credential's scope differs from the date of the request.")
	}
	lives := Skew
	if c.presigned {
		lives = c.expires
	}
	if now.After(c.at.Add(lives)) || c.at.After(now.Add(Skew)) {
		return wire.NewError(api.ErrRequestExpired, "The request of %s is not valid at %s: it has expired, or a clock is wrong.",
			c.at.Format(timeLayout), now.UTC().Format(timeLayout))
	}
	return nil
}

// checkHeaders refuses a request to which somebody could have added a header
// that counts, or from which one was taken away.
func (c claim) checkHeaders(r *http.Request) error {
	if !c.signs("host") {
		return mismatch("The header Host must be signed.")
	}
	for name := range r.Header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-amz-") && !c.signs(lower) {
			return mismatch("All X-Amz-* headers must be signed.")
		}
	}
	for _, name := range c.signed {
		if _, ok := signature.HeaderValues(r, name); !ok {
			return mismatch("The request does not have all the headers that it has signed.")
		}
	}
	return nil
}

// signs reports whether the header is among the signed ones, which are sorted.
func (c claim) signs(name string) bool {
	_, found := slices.BinarySearch(c.signed, name)
	return found
}

// signedHash returns the hash of the body. A request that names a hash must name
// that one; unsigned bodies are refused.
func signedHash(r *http.Request, body []byte) (string, error) {
	sum := signature.Hash(body)
	if named := r.Header.Get("X-Amz-Content-Sha256"); named != "" && named != sum {
		return "", mismatch("X-Amz-Content-Sha256 is not the hash of the request's body; an unsigned body is not accepted.")
	}
	return sum, nil
}

func mismatch(message string) *wire.Error {
	return wire.NewError(api.ErrSignatureDoesNotMatch, "%s", message)
}
