// Package access is the access keys that are kept in the state: who they are, what
// they may do, and their secrets. SigV4 needs the secret itself to verify with, so
// that it cannot be a hash: it is sealed with a key that control planes hold and
// hosts, which read the state too, do not.
//
// Invariants: a secret is told once, when it is made; it is bound to its access key
// and account, so that it opens in no other record; a key whose policy cannot be
// read may do nothing.
package access

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"howdah/internal/identity/iam"
	"howdah/internal/identity/seal"
)

// Key is the record of an access key.
type Key struct {
	ID      string    `json:"id"`      // the access key, as clients send it
	Account string    `json:"account"` // twelve digits
	Name    string    `json:"name"`    // of the user, in ARNs and in the audit log
	Sealed  []byte    `json:"sealed"`
	Created time.Time `json:"created"`
	// CreatedBy is the access key that made it.
	CreatedBy string `json:"created_by"`
	// ReadOnly and Policy limit the key; where both are given, both must allow.
	ReadOnly bool   `json:"read_only"`
	Policy   string `json:"policy,omitempty"` // IAM's JSON
}

var (
	nameForm    = regexp.MustCompile(`^[\w+=,.@-]{1,64}$`)
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
)

// ErrInvalid says that a key cannot be as it was asked for.
var ErrInvalid = errors.New("invalid access key")

// Check checks what users choose.
func (k Key) Check() error {
	if !accountForm.MatchString(k.Account) {
		return fmt.Errorf("%w: an account is twelve digits, not %q", ErrInvalid, k.Account)
	}
	if !nameForm.MatchString(k.Name) {
		return fmt.Errorf("%w: a name is 1 to 64 letters, digits or any of +=,.@_-, not %q", ErrInvalid, k.Name)
	}
	_, err := k.Policies()
	return err
}

// readOnly is the policy of keys that may only look.
const readOnly = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*", "Action": [
	"rds:Describe*", "rds:List*", "rds:Download*", "sts:GetCallerIdentity",
	"ec2:Describe*", "sns:Get*", "sns:List*",
	"howdah:Status", "howdah:Database", "howdah:Failovers", "howdah:Held", "howdah:Operations"
]}]}`

var readOnlyPolicy = func() *iam.Policy {
	p, err := iam.Parse([]byte(readOnly))
	if err != nil {
		panic("access: " + err.Error())
	}
	return p
}()

// Policies are those that must all allow what the key does; none: it may do
// everything in its account.
func (k Key) Policies() ([]*iam.Policy, error) {
	var all []*iam.Policy
	if k.ReadOnly {
		all = append(all, readOnlyPolicy)
	}
	if k.Policy != "" {
		p, err := iam.Parse([]byte(k.Policy))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// ARN is how messages and the audit log name who holds the key.
func (k Key) ARN() string { return "arn:aws:iam::" + k.Account + ":user/" + k.Name }

// Sealer seals and opens secrets.
type Sealer struct{ aead cipher.AEAD }

// NewSealer makes a sealer of a key of 32 bytes.
func NewSealer(key []byte) (*Sealer, error) {
	aead, err := seal.New(key)
	if err != nil {
		return nil, err
	}
	return &Sealer{aead}, nil
}

// Issue completes a key with an id and a secret. The secret is nowhere else.
func (s *Sealer) Issue(k Key) (Key, string) {
	k.ID = "HOWDAH" + strings.ToUpper(hex.EncodeToString(random(7)))
	if k.Name == "" {
		k.Name = k.ID
	}
	secret := base64.RawURLEncoding.EncodeToString(random(30))
	k.Sealed = s.aead.Seal(nil, nil, []byte(secret), k.bound())
	return k, secret
}

// Open answers the secret of a key.
func (s *Sealer) Open(k Key) (string, error) {
	secret, err := s.aead.Open(nil, nil, k.Sealed, k.bound())
	if err != nil {
		return "", fmt.Errorf("open the secret of %s: %w", k.ID, err)
	}
	return string(secret), nil
}

// bound is everything that decides what the secret is good for: whoever can write
// the state cannot widen a key.
func (k Key) bound() []byte {
	return fmt.Appendf(nil, "%q %q %q %t %q", k.ID, k.Account, k.Name, k.ReadOnly, k.Policy)
}

func random(n int) []byte {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic("access: no randomness: " + err.Error())
	}
	return b
}
