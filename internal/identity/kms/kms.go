// Package kms has the keys that encrypt databases' storage. There are three layers, and each opens
// the next one: the key that all control planes have and no host (home.SealKey), the KMS keys of
// accounts, and one key for each database. From that last key one is derived for each member. So a
// host learns the keys of its own members alone, and two members on one file system can be locked
// apart.
//
// All keys are in the state, sealed. Whoever deletes a key there destroys what it opens, if no copy
// of the state is left. Backups of the home are such copies.
package kms

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"howdah/internal/model/spec"
	"howdah/internal/system/fscrypt"
)

const size = 32 // bytes of KMS keys and of databases' keys: AES-256

// ServiceAlias is the alias of the key of databases for which nobody named one.
const ServiceAlias = "alias/aws/rds"

// Key is a KMS key of an account in a region. Only server writes it.
type Key struct {
	spec.Scope
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	// Service says that the key was made for ServiceAlias. Nobody can delete such a key.
	Service  bool       `json:"service,omitempty"`
	Created  time.Time  `json:"created"`
	Disabled bool       `json:"disabled,omitempty"`
	DeleteAt time.Time  `json:"delete_at,omitzero"` // it is to be deleted then
	Tags     []spec.Tag `json:"tags,omitempty"`
	// Uses counts the databases that were made with the key. So whoever looks whether there are any
	// notices one that comes meanwhile.
	Uses   int64  `json:"uses,omitempty"`
	Sealed []byte `json:"sealed"`
}

// Alias is another name of a key. Only server writes it.
type Alias struct {
	Key     string    `json:"key"` // id
	Created time.Time `json:"created"`
}

// Storage is the key of a database's storage, sealed by a KMS key. Server writes it when the
// database is made, and reconcile removes it with the database.
type Storage struct {
	Database string `json:"database"` // resource id
	spec.Scope
	Key     string `json:"key"` // id of the KMS key in this scope
	Wrapped []byte `json:"wrapped"`
}

// ErrNotUsable says that a key is disabled or is to be deleted.
var ErrNotUsable = errors.New("the KMS key is not enabled")

// New makes a key.
func New(seal []byte, scope spec.Scope, now time.Time) (Key, error) {
	k := Key{Scope: scope, ID: newID(), Created: now}
	var err error
	k.Sealed, err = wrap(seal, random(), k.bound())
	return k, err
}

// ARN returns the ARN of the key.
func (k Key) ARN() string { return ARN(k.Scope, k.ID) }

// ARN returns the ARN of a key with this id.
func ARN(scope spec.Scope, id string) string { return arn(scope, "key/"+id) }

// AliasARN returns the ARN of an alias.
func AliasARN(scope spec.Scope, alias string) string { return arn(scope, alias) }

func arn(scope spec.Scope, name string) string {
	return strings.Join([]string{"arn:aws:kms", scope.Region, scope.Account, name}, ":")
}

var idForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Parse reads a name of a key: an id, an ARN, an alias, or the ARN of an alias. One of id and alias
// is "". A name without a scope is in the caller's scope.
func Parse(name string, caller spec.Scope) (scope spec.Scope, id, alias string, ok bool) {
	scope = caller
	if rest, is := strings.CutPrefix(name, "arn:aws:kms:"); is {
		parts := strings.SplitN(rest, ":", 3)
		if len(parts) != 3 {
			return scope, "", "", false
		}
		scope = spec.Scope{Region: parts[0], Account: parts[1]}
		if name, is = strings.CutPrefix(parts[2], "key/"); !is {
			if name = parts[2]; !strings.HasPrefix(name, "alias/") {
				return scope, "", "", false
			}
		}
	}
	if strings.HasPrefix(name, "alias/") {
		return scope, "", name, true
	}
	return scope, name, "", idForm.MatchString(name)
}

// Usable reports whether the key may open databases.
func (k Key) Usable() bool { return !k.Disabled && k.DeleteAt.IsZero() }

// bound returns what binds the secret to this key. So whoever can write the state cannot exchange
// secrets.
func (k Key) bound() []byte { return fmt.Appendf(nil, "kms %q", k.ARN()) }

func (k Key) open(seal []byte) ([]byte, error) {
	if !k.Usable() {
		return nil, fmt.Errorf("open %s: %w", k.ARN(), ErrNotUsable)
	}
	secret, err := unwrap(seal, k.Sealed, k.bound())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", k.ARN(), err)
	}
	return secret, nil
}

// NewStorage makes the key of a database.
func (k Key) NewStorage(seal []byte, database string) (Storage, error) {
	secret, err := k.open(seal)
	if err != nil {
		return Storage{}, err
	}
	defer clear(secret)
	s := Storage{Database: database, Scope: k.Scope, Key: k.ID}
	s.Wrapped, err = wrap(secret, random(), s.bound())
	return s, err
}

func (s Storage) bound() []byte { return fmt.Appendf(nil, "storage %q", s.Database) }

// ForMember returns the key of a member's directory: see fscrypt. k is the KMS key that seals the
// database's key.
func (s Storage) ForMember(seal []byte, k Key, member string) ([]byte, error) {
	secret, err := k.open(seal)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	own, err := unwrap(secret, s.Wrapped, s.bound())
	if err != nil {
		return nil, fmt.Errorf("open the key of database %s: %w", s.Database, err)
	}
	defer clear(own)
	return hkdf.Key(sha256.New, own, nil, "howdah member "+member, fscrypt.KeySize)
}

func wrap(with, secret, bound []byte) ([]byte, error) {
	defer clear(secret)
	aead, err := newAEAD(with)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, secret, bound), nil
}

func unwrap(with, sealed, bound []byte) ([]byte, error) {
	aead, err := newAEAD(with)
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, nil, sealed, bound)
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal a key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seal a key: %w", err)
	}
	return aead, nil
}

func random() []byte {
	secret := make([]byte, size)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// newID returns a UUID, the form of ids of keys.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
