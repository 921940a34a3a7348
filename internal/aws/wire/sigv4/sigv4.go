// Package sigv4 signs and verifies requests with AWS Signature Version 4, in a
// header or in the query string of a presigned URL.
//
// Invariants: a verified request was signed, body included, by the holder of the
// secret; every header that could change its meaning (Host and all X-Amz-*) was
// signed too. No secret and no computed signature appears in an error or a log.
package sigv4

import (
	"log/slog"
	"net/url"
	"path"
	"strings"
	"time"

	"howdah/internal/identity/signature"
)

const (
	algorithm  = signature.Algorithm
	terminator = signature.Terminator
	timeLayout = signature.TimeLayout
	dateLayout = signature.DateLayout
)

// scope is what a signature is valid for.
type scope = signature.Scope

const (
	// Skew is how far the clocks of client and server may differ, and how long a
	// presigned URL that names no lifetime is valid.
	Skew = 15 * time.Minute
	// MaxExpires is the longest lifetime of a presigned URL.
	MaxExpires = 7 * 24 * time.Hour
)

// Credentials are what a client signs with. SessionToken may be empty. They
// print without the secret.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
}

// String returns the credentials' name, never the secret.
func (c Credentials) String() string { return "access key " + c.AccessKeyID }

// GoString keeps the secret out of %#v.
func (c Credentials) GoString() string { return c.String() }

// LogValue keeps the secret out of slog.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText keeps the secret out of encoders.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Identity says who signed a request, and for which region and service. From
// Verify, the latter two hold lower-case letters, digits and hyphens only.
type Identity struct {
	AccessKeyID string
	Region      string
	Service     string
}

// canonicalPath returns the path of the URL without dot segments and encoded
// once more than on the wire, as every service but S3 wants it.
func canonicalPath(u *url.URL) string {
	wire := u.EscapedPath()
	clean := path.Clean("/" + wire)
	if strings.HasSuffix(wire, "/") && clean != "/" {
		clean += "/"
	}
	return signature.Encode(clean, true)
}
