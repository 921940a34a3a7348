// Package signature has the texts and keys of AWS Signature Version 4, which all who sign and verify
// have in common. It refuses nothing: that is for those who know the service.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// What signatures have in them.
const (
	Algorithm  = "AWS4-HMAC-SHA256"
	Terminator = "aws4_request"
	TimeLayout = "20060102T150405Z"
	DateLayout = "20060102"
)

// Scope is what a signature is valid for.
type Scope struct {
	Date, Region, Service string
}

// String returns the scope as it is signed.
func (s Scope) String() string {
	return s.Date + "/" + s.Region + "/" + s.Service + "/" + Terminator
}

// Key returns the key with which a secret signs in this scope.
func (s Scope) Key(secret string) []byte {
	key := []byte("AWS4" + secret)
	for _, part := range []string{s.Date, s.Region, s.Service, Terminator} {
		key = mac(key, part)
	}
	return key
}

// Signature returns the signature, in hexadecimal, of a canonical request.
func (s Scope) Signature(secret string, at time.Time, canonical string) string {
	return Sign(s.Key(secret), Algorithm+"\n"+at.Format(TimeLayout)+"\n"+s.String()+"\n"+Hash([]byte(canonical)))
}

// Sign returns the signature of a text, in hexadecimal.
func Sign(key []byte, text string) string { return hex.EncodeToString(mac(key, text)) }

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Hash returns the hash of a text, in hexadecimal.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
