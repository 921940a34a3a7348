// Package sigv4 signs and verifies requests with AWS Signature Version 4, in a
// header or in the query string of a presigned URL.
//
// Invariants: a verified request was signed, body included, by the holder of the
// secret; every header that could change its meaning (Host and all X-Amz-*) was
// signed too. No secret and no computed signature appears in an error or a log.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	terminator = "aws4_request"
	timeLayout = "20060102T150405Z"
	dateLayout = "20060102"
)

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

// scope is what a signature is valid for.
type scope struct {
	date, region, service string
}

func (s scope) String() string {
	return s.date + "/" + s.region + "/" + s.service + "/" + terminator
}

// signature returns the signature, in hexadecimal, of a canonical request.
func (s scope) signature(secret string, at time.Time, canonical string) string {
	toSign := algorithm + "\n" + at.Format(timeLayout) + "\n" + s.String() + "\n" + hash([]byte(canonical))
	key := []byte("AWS4" + secret)
	for _, part := range []string{s.date, s.region, s.service, terminator, toSign} {
		key = mac(key, part)
	}
	return hex.EncodeToString(key)
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
