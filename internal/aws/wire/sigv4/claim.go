package sigv4

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// claim is what a request says of its signature, well-formed but not verified.
type claim struct {
	accessKeyID string
	scope       scope
	at          time.Time
	signed      []string
	signature   string
	// presigned claims are valid from at until expires later.
	presigned bool
	expires   time.Duration
}

// readClaim reads the claim from the header Authorization or from the URL.
func readClaim(r *http.Request) (claim, error) {
	header := r.Header.Values("Authorization")
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return claim{}, wire.NewError(api.ErrMalformedQueryString, "The query string contains a syntax error.")
	}
	inQuery := query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Signature")
	switch {
	case len(header) == 0 && !inQuery:
		return claim{}, wire.NewError(api.ErrMissingAuthenticationToken, "The request must be signed: it has no Authorization header and no X-Amz-Signature.")
	case len(header) > 1 || len(header) == 1 && inQuery:
		return claim{}, incomplete("The request must be signed once.")
	case inQuery:
		return claimInQuery(query)
	}
	c, err := parseAuthorization(header[0])
	if err != nil {
		return claim{}, err
	}
	if c.at, err = headerTime(r.Header); err != nil {
		return claim{}, err
	}
	return c, nil
}

// Signed reports whether a request says that it is signed.
func Signed(r *http.Request) bool {
	query := r.URL.Query()
	return len(r.Header.Values("Authorization")) > 0 || query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Signature")
}

// ClaimedService is the service that a request says it is for, or "". Nothing of it is
// proved: it may only decide in which form a refusal is written.
func ClaimedService(r *http.Request) string {
	c, err := readClaim(r)
	if err != nil {
		return ""
	}
	return c.scope.Service
}

// parseAuthorization reads the value of the header Authorization.
func parseAuthorization(header string) (claim, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	if name != algorithm {
		return claim{}, incomplete("The signature's algorithm must be " + algorithm + ".")
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if _, twice := parts[key]; twice || value == "" {
			return claim{}, incomplete("The Authorization header is malformed.")
		}
		parts[key] = value
	}
	return newClaim(parts["Credential"], parts["SignedHeaders"], parts["Signature"])
}

func claimInQuery(query url.Values) (claim, error) {
	if query.Get("X-Amz-Algorithm") != algorithm {
		return claim{}, incomplete("The signature's algorithm must be " + algorithm + ".")
	}
	c, err := newClaim(query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature"))
	if err != nil {
		return claim{}, err
	}
	c.presigned = true
	if c.at, err = parseTime(query.Get("X-Amz-Date")); err != nil {
		return claim{}, err
	}
	c.expires, err = lifetime(query)
	return c, err
}

// lifetime returns how long a presigned URL is valid. The Go SDK leaves the
// parameter out of URLs for STS, which then live as long as a signed header.
func lifetime(query url.Values) (time.Duration, error) {
	if !query.Has("X-Amz-Expires") {
		return Skew, nil
	}
	seconds, err := strconv.ParseUint(query.Get("X-Amz-Expires"), 10, 31)
	d := time.Duration(seconds) * time.Second
	if err != nil || d < time.Second || d > MaxExpires {
		return 0, incomplete("X-Amz-Expires must be a number of seconds from 1 to 604800.")
	}
	return d, nil
}

func newClaim(credential, signed, signature string) (claim, error) {
	if credential == "" || signed == "" || signature == "" {
		return claim{}, incomplete("The request's authorization must have Credential, SignedHeaders and Signature.")
	}
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[4] != terminator {
		return claim{}, incomplete("The Credential must have the form <access key>/<date>/<region>/<service>/" + terminator + ".")
	}
	c := claim{
		accessKeyID: parts[0],
		scope:       scope{Date: parts[1], Region: parts[2], Service: parts[3]},
		signed:      strings.Split(signed, ";"),
		signature:   signature,
	}
	if c.accessKeyID == "" || !plain(c.scope.Region) || !plain(c.scope.Service) {
		return claim{}, incomplete("The Credential must name an access key, a region and a service.")
	}
	if len(signature) != 64 || strings.Trim(signature, "0123456789abcdef") != "" {
		return claim{}, incomplete("The Signature must have 64 hexadecimal digits.")
	}
	if !wellOrdered(c.signed) {
		return claim{}, incomplete("The SignedHeaders must be lower-case names in order, without repetition.")
	}
	return c, nil
}

// plain reports whether a name is one that regions and services have: lower-case
// letters, digits and hyphens.
func plain(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func wellOrdered(names []string) bool {
	last := ""
	for _, name := range names {
		if name <= last || name != strings.ToLower(name) {
			return false
		}
		last = name
	}
	return true
}

// headerTime returns when the request was signed: X-Amz-Date, or else Date.
func headerTime(header http.Header) (time.Time, error) {
	if text := header.Get("X-Amz-Date"); text != "" {
		return parseTime(text)
	}
	text := header.Get("Date")
	if t, err := http.ParseTime(text); err == nil {
		return t.UTC(), nil
	}
	return parseTime(text)
}

func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(timeLayout, text)
	if err != nil {
		return time.Time{}, incomplete("The request must have a valid X-Amz-Date, like 20060102T150405Z.")
	}
	return t, nil
}

func incomplete(message string) *wire.Error {
	return wire.NewError(api.ErrIncompleteSignature, "%s", message)
}
