// Package access has the access keys that are kept in the state: who they are, what they may do,
// and their secrets. To verify SigV4 takes the secret itself, so a hash would not do. A secret is
// sealed with a key that control planes hold. Hosts read the state, too, and do not have that key.
//
// Invariants: a secret is told once, when it is made. It is bound to its access key and account, so
// that it opens in no other record. A key whose policy cannot be read may do nothing.
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
	// ReadOnly and Policy limit the key. If both are given, both must allow.
	ReadOnly bool   `json:"read_only"`
	Policy   string `json:"policy,omitempty"` // IAM's JSON
}

var (
	nameForm    = regexp.MustCompile(`^[\w+=,.@-]{1,64}$`)
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
)

// ErrInvalid says that a key cannot be as it was asked for.
var ErrInvalid = errors.New("invalid access key")

// Check returns an ErrInvalid if what users choose cannot be so.
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

// readOnly is the policy of read-only keys.
const readOnly = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*", "Action": [
	"rds:Describe*", "rds:List*", "rds:Download*", "sts:GetCallerIdentity",
	"ec2:Describe*", "sns:Get*", "sns:List*",
	"howdah:Status", "howdah:Database", "howdah:Failovers", "howdah:Held", "howdah:Operations",
	"howdah:RepositoryList", "howdah:RepositoryShow", "howdah:RoleList",
	"howdah:Backups", "howdah:BackupShow", "howdah:Drills", "howdah:Snapshots"
]}]}`

var readOnlyPolicy = func() *iam.Policy {
	p, err := iam.Parse([]byte(readOnly))
	if err != nil {
		panic("access: " + err.Error())
	}
	return p
}()

// Policies returns the policies of the key. All of them must allow what it does. Without any, it
// may do everything in its account.
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

// ARN names the holder of the key in messages and in the audit log.
func (k Key) ARN() string { return "arn:aws:iam::" + k.Account + ":user/" + k.Name }

// Sealer seals and opens secrets.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns a sealer with a key of 32 bytes.
func NewSealer(key []byte) (*Sealer, error) {
	aead, err := seal.New(key)
	if err != nil {
		return nil, err
	}
	return &Sealer{aead}, nil
}

// Issue returns the key with a new id, and a new secret. The secret is kept nowhere else.
func (s *Sealer) Issue(k Key) (Key, string) {
	k.ID = "HOWDAH" + strings.ToUpper(hex.EncodeToString(random(7)))
	if k.Name == "" {
		k.Name = k.ID
	}
	secret := base64.RawURLEncoding.EncodeToString(random(30))
	k.Sealed = s.aead.Seal(nil, nil, []byte(secret), k.bound())
	return k, secret
}

// Open returns the secret of a key.
func (s *Sealer) Open(k Key) (string, error) {
	secret, err := s.aead.Open(nil, nil, k.Sealed, k.bound())
	if err != nil {
		return "", fmt.Errorf("open the secret of %s: %w", k.ID, err)
	}
	return string(secret), nil
}

// bound returns everything that decides what the secret is good for. The seal covers it, so whoever
// can write the state cannot widen a key.
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
