// Package scram turns a password into what PostgreSQL keeps of it. So the password itself is never
// stored or sent anywhere.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// Iterations is PostgreSQL's own default (scram_iterations, from version 16 on a
// setting).
const Iterations = 4096

// Verifier returns the SCRAM-SHA-256 verifier of a password, with a new salt, in the form of
// pg_authid.rolpassword (RFC 5803). The password must be ASCII: SASLprep does not change that.
func Verifier(password string) (string, error) {
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("make salt: %w", err)
	}
	return verifier(password, salt, Iterations)
}

func verifier(password string, salt []byte, iterations int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive key: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(stored[:]), encode(mac(salted, "Server Key"))), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Matches reports whether a password has this verifier.
func Matches(password, kept string) bool {
	head, _, ok := strings.Cut(strings.TrimPrefix(kept, "SCRAM-SHA-256$"), "$")
	if !ok {
		return false
	}
	count, saltText, ok := strings.Cut(head, ":")
	iterations, err := strconv.Atoi(count)
	if !ok || err != nil {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(saltText)
	if err != nil {
		return false
	}
	again, err := verifier(password, salt, iterations)
	return err == nil && subtle.ConstantTimeCompare([]byte(again), []byte(kept)) == 1
}
