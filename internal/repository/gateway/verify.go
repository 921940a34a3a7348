package gateway

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"

	"howdah/internal/identity/signature"
)

// skew is how far the clocks of members and of the gateway may differ.
const skew = 15 * time.Minute

// claim is what a request says of its signature.
type claim struct {
	accessKey string
	scope     signature.Scope
	at        time.Time
	signed    []string
	signature string
	// payload is the x-amz-content-sha256.
	payload string
}

// parseClaim reads what a request says, and refuses what cannot be right, whoever signed it.
func parseClaim(r *http.Request, now time.Time) (claim, error) {
	header := r.Header.Values("Authorization")
	if len(header) != 1 {
		return claim{}, errUnsigned
	}
	c, err := parseAuthorization(header[0])
	if err != nil {
		return claim{}, err
	}
	if c.at, err = time.Parse(signature.TimeLayout, r.Header.Get("X-Amz-Date")); err != nil {
		return claim{}, malformed("X-Amz-Date must be a time like 20060102T150405Z.")
	}
	if now.Sub(c.at).Abs() > skew {
		return claim{}, errSkewed
	}
	if c.scope.Date != c.at.Format(signature.DateLayout) || c.scope.Service != "s3" {
		return claim{}, errSignature
	}
	payload := r.Header.Values("X-Amz-Content-Sha256")
	if len(payload) != 1 {
		return claim{}, malformed("The request must have x-amz-content-sha256, once.")
	}
	c.payload = payload[0]
	return c, c.checkHeaders(r)
}

// checkHeaders refuses a request to which somebody could have added a header that counts.
func (c claim) checkHeaders(r *http.Request) error {
	if !slices.Contains(c.signed, "host") {
		return errSignature
	}
	for name := range r.Header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-amz-") && !slices.Contains(c.signed, lower) {
			return &refusal{http.StatusForbidden, "AccessDenied", "The header " + lower + " must be signed."}
		}
	}
	for _, name := range c.signed {
		if _, ok := signature.HeaderValues(r, name); !ok {
			return errSignature
		}
	}
	return nil
}

// parseAuthorization reads the value of the header Authorization.
func parseAuthorization(header string) (claim, error) {
	wrong := malformed("The Authorization header is malformed, or its algorithm is not %s.", signature.Algorithm)
	rest, ok := strings.CutPrefix(header, signature.Algorithm+" ")
	if !ok {
		return claim{}, wrong
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if parts[name] != "" || value == "" {
			return claim{}, wrong
		}
		parts[name] = value
	}
	credential := strings.Split(parts["Credential"], "/")
	c := claim{signed: strings.Split(parts["SignedHeaders"], ";"), signature: parts["Signature"]}
	if len(credential) != 5 || credential[4] != signature.Terminator || len(c.signature) != 64 || !sorted(c.signed) {
		return claim{}, wrong
	}
	c.accessKey = credential[0]
	c.scope = signature.Scope{Date: credential[1], Region: credential[2], Service: credential[3]}
	return c, nil
}

// sorted reports whether names are lower-case and in order, without repetition.
func sorted(names []string) bool {
	last := ""
	for _, name := range names {
		if name <= last || name != strings.ToLower(name) {
			return false
		}
		last = name
	}
	return true
}

// verify refuses a request that was not signed with that secret. The body counts by its hash only:
// see body.
func (c claim) verify(r *http.Request, secret string) error {
	query, ok := signature.Query(r.URL.RawQuery, "")
	if !ok {
		return malformed("The query string is malformed.")
	}
	// Clients encode the path in the way that is signed, or sign it in the way that they have encoded.
	for _, path := range []string{signature.Encode(r.URL.Path, true), r.URL.EscapedPath()} {
		text := signature.Canonical(r, path, query, c.signed, c.payload)
		want := c.scope.Signature(secret, c.at, text)
		if subtle.ConstantTimeCompare([]byte(want), []byte(c.signature)) == 1 {
			return nil
		}
	}
	return errSignature
}
