// Package repository has the secrets of backup repositories: the key that encrypts what lies in
// one, and the secret that logs in to it. Both are in the state, sealed with a key that all control
// planes have and no host (home.SealKey). Each database's passphrase follows from the key of the
// repository, so that a host learns the passphrases of its own databases alone.
//
// Whoever loses the home and the key loses the backups. Export writes a key as text that can be
// kept on paper or in a vault, and Parse reads it. The package does no I/O.
package repository

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"howdah/internal/identity/seal"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
)

// Size is how many bytes a key has: AES-256.
const Size = 32

// NewKey makes a key.
func NewKey() []byte { return random(Size) }

// NewID makes the id of a repository.
func NewID() string { return "repo-" + hex.EncodeToString(random(8)) }

func random(n int) []byte {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic("repository: no randomness: " + err.Error())
	}
	return b
}

// Passphrase returns what encrypts the part of one database. Without a key it is "".
func Passphrase(key []byte, database string) string {
	if len(key) == 0 {
		return ""
	}
	return base64.StdEncoding.EncodeToString(derive(key, "howdah repository v1\x00"+database))
}

// Proof returns a text for the marker of a repository with this id. It shows whether somebody has
// the right key, and tells nothing of the key. Without a key it is "".
func Proof(key []byte, id string) string {
	if len(key) == 0 {
		return ""
	}
	return base64.StdEncoding.EncodeToString(derive(key, "howdah repository proof v1\x00"+id))
}

// Proved reports whether a key is the one that a proof was made with.
func Proved(key []byte, id, proof string) bool {
	return hmac.Equal([]byte(Proof(key, id)), []byte(proof))
}

func derive(key []byte, of string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(of))
	return h.Sum(nil)
}

// Sealer seals the secrets of repositories and opens them.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns a sealer with the home's key.
func NewSealer(key []byte) (*Sealer, error) {
	aead, err := seal.New(key)
	return &Sealer{aead}, err
}

// Seal returns the record with a key and the secret of S3. A nil key says that nothing is
// encrypted, and a secret of "" that nobody logs in. The place and the id must be set before, as
// what is sealed opens for them alone.
func (s *Sealer) Seal(r backup.Repository, key []byte, secret string) backup.Repository {
	r.Key, r.Secret = nil, nil
	if len(key) > 0 {
		r.Key = s.aead.Seal(nil, nil, key, boundKey(r))
	}
	if secret != "" {
		r.Secret = s.aead.Seal(nil, nil, []byte(secret), boundSecret(r))
	}
	return r
}

// Open returns what Seal put into a record.
func (s *Sealer) Open(r backup.Repository) (key []byte, secret string, err error) {
	if len(r.Key) > 0 {
		if key, err = s.aead.Open(nil, nil, r.Key, boundKey(r)); err != nil {
			return nil, "", fmt.Errorf("open the key of repository %s: %w", r.Name, err)
		}
	}
	if len(r.Secret) > 0 {
		opened, err := s.aead.Open(nil, nil, r.Secret, boundSecret(r))
		if err != nil {
			return nil, "", fmt.Errorf("open the secret of repository %s: %w", r.Name, err)
		}
		secret = string(opened)
	}
	return key, secret, nil
}

// boundKey returns what a key is good for. So whoever can write the state cannot have one
// repository encrypted with the key of another.
func boundKey(r backup.Repository) []byte { return fmt.Appendf(nil, "repository key %q", r.ID) }

// boundSecret returns where the secret logs in. So whoever can write the state cannot have it sent
// to another server.
func boundSecret(r backup.Repository) []byte {
	return fmt.Appendf(nil, "repository secret %q %q %q %q %q", r.ID, r.Endpoint, r.Bucket, r.AccessKey, r.CA)
}

// Access returns what opens a repository for a database. A database of "" gives no passphrase.
func (s *Sealer) Access(r backup.Repository, database string) (member.Repository, error) {
	key, secret, err := s.Open(r)
	if err != nil {
		return member.Repository{}, err
	}
	a := member.Repository{
		Name: r.Name, ID: r.ID, Kind: string(r.Kind), Path: r.Path, Endpoint: r.Endpoint, Region: r.Region,
		Bucket: r.Bucket, Prefix: r.Prefix, CA: r.CA, AccessKey: r.AccessKey, Secret: secret,
	}
	if database != "" {
		a.Passphrase = Passphrase(key, database)
	}
	return a, nil
}
