// Package secret has the passwords of master users that Howdah makes, keeps and changes. That is
// the part of Secrets Manager that RDS uses. It does no I/O.
package secret

import (
	"cmp"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"time"

	"howdah/internal/identity/seal"
	"howdah/internal/model/spec"
)

// Days is after how many days a password is changed by default. MostDays is the most that may be
// set.
const (
	Days     = 7
	MostDays = 1000
)

// Version is one password of a secret.
type Version struct {
	ID string `json:"id"`
	// Sealed is the password, sealed.
	Sealed  []byte    `json:"sealed"`
	Created time.Time `json:"created"`
	// Serial is the serial of the master user's verifier for this password.
	Serial int64 `json:"serial"`
}

// Secret is the password of a database's master user, with the previous one, and the one that the
// database is about to take. Only server writes it, with the record that has the verifier.
type Secret struct {
	spec.Scope
	Database string `json:"database"` // resource id
	// Sealed is the resource id that the versions are sealed for, if that is another one: see Move.
	Sealed  string `json:"sealed,omitempty"`
	Cluster bool   `json:"cluster,omitempty"`
	Name    string `json:"name"`
	Suffix  string `json:"suffix"` // of its ARN
	User    string `json:"user"`

	Created time.Time `json:"created"`
	Rotated time.Time `json:"rotated,omitzero"`
	Days    int       `json:"days"`

	// Known says that the database has had the first password. All others are pending until it has
	// taken them.
	Known bool `json:"known,omitempty"`

	Current  Version  `json:"current"`
	Previous *Version `json:"previous,omitempty"`
	Pending  *Version `json:"pending,omitempty"`
	// Overruled has passwords that were pending when the database was given another one. It may
	// have taken them before, so they are kept until it says what it has.
	Overruled []Version `json:"overruled,omitempty"`
	// Until is the serial of the password that the owner chose in place of all of these. They are
	// kept until the database has that one. 0 says that Howdah manages the password.
	Until int64 `json:"until,omitempty"`
}

// mostOverruled bounds how many such passwords are kept.
const mostOverruled = 8

// The stages of a version.
const (
	Current  = "AWSCURRENT"
	Previous = "AWSPREVIOUS"
	Pending  = "AWSPENDING"
)

// The statuses of a secret, as RDS shows them.
const (
	Creating = "creating" // the database has not taken its first password yet
	Active   = "active"   // the current password is that of the database
	Rotating = "rotating"
	Impaired = "impaired" // a password was not taken for long, or none goes with the verifier
)

// impairedAfter is how long a database may take no password before the secret counts as impaired.
const impairedAfter = 15 * time.Minute

// minToken and maxToken bound the length of a version's name that its maker chose.
const (
	minToken = 32
	maxToken = 64
)

// GoodToken reports whether a version may have this name.
func GoodToken(token string) bool { return len(token) >= minToken && len(token) <= maxToken }

// New makes the secret of a database's master user, and its first password, which has this serial.
func New(scope spec.Scope, database string, cluster bool, user string, serial int64, now time.Time, sealer *Sealer) (s Secret, password string) {
	kind := "db"
	if cluster {
		kind = "cluster"
	}
	s = Secret{
		Scope: scope, Database: database, Cluster: cluster, User: user, Created: now, Days: Days,
		Name: "rds!" + kind + "-" + newID(), Suffix: text(6, letters),
	}
	s.Current, password = sealer.version(s, newID(), serial, now)
	return s, password
}

// ARN returns the ARN of the secret.
func (s Secret) ARN() string { return s.Prefix() + "-" + s.Suffix }

// Prefix returns the beginning of the ARN, up to the name.
func (s Secret) Prefix() string {
	return "arn:aws:secretsmanager:" + s.Region + ":" + s.Account + ":secret:" + s.Name
}

// Rotate gives the secret another password, which has this serial. The password is pending until
// the database has taken it. token names the new version. If it is "", the version gets a name.
func (s Secret) Rotate(serial int64, token string, now time.Time, sealer *Sealer) (next Secret, password string) {
	next = s
	if token == "" {
		token = newID()
	}
	var v Version
	v, password = sealer.version(s, token, serial, now)
	if s.Pending != nil {
		next.Overruled = append(slices.Clone(s.Overruled), *s.Pending)
		next.Overruled = next.Overruled[max(0, len(next.Overruled)-mostOverruled):]
	}
	next.Pending, next.Until = &v, 0
	return next, password
}

// Leave returns the secret after the owner has chosen a password, which has this serial. The secret
// is of use until the database has taken that password.
func (s Secret) Leave(serial int64) Secret {
	s.Until = serial
	return s
}

// Move returns the secret as that of another database which takes the place of its own one, and whose
// master user has the same passwords. The verifier of serial from has the serial to there.
func (s Secret) Move(database string, from, to int64) Secret {
	s.Sealed = cmp.Or(s.Sealed, s.Database)
	s.Database = database
	there := func(serial int64) int64 {
		if serial == from {
			return to
		}
		return serial
	}
	s.Current.Serial, s.Until = there(s.Current.Serial), there(s.Until)
	if s.Pending != nil {
		pending := *s.Pending
		pending.Serial = there(pending.Serial)
		s.Pending = &pending
	}
	return s
}

// Left reports whether the database has the owner's password, so that nobody needs the secret any
// more.
func (s Secret) Left(taken int64) bool { return s.Until > 0 && taken >= s.Until }

// All returns all versions, the newest first.
func (s Secret) All() []Version {
	var all []Version
	if s.Pending != nil {
		all = append(all, *s.Pending)
	}
	for _, v := range slices.Backward(s.Overruled) {
		all = append(all, v)
	}
	all = append(all, s.Current)
	if s.Previous != nil {
		all = append(all, *s.Previous)
	}
	return all
}

// Made reports whether a version that is pending or current was made by a call with this token.
func (s Secret) Made(token string) bool {
	return token != "" && (s.Current.ID == token || s.Pending != nil && s.Pending.ID == token)
}

// Taken returns the secret after the database has taken the verifier of this serial. What was
// pending may be current then. A later verifier belongs to another password, which nobody knows.
func (s Secret) Taken(serial int64, now time.Time) Secret {
	if s.Pending != nil && serial == s.Pending.Serial {
		return s.become(*s.Pending, now)
	}
	for _, v := range s.Overruled {
		if serial == v.Serial {
			return s.become(v, now) // what is pending comes after it
		}
	}
	s.Known = s.Known || serial == s.Current.Serial
	return s
}

// become makes a version the current one. Older versions cannot be taken any more.
func (s Secret) become(v Version, now time.Time) Secret {
	before := s.Current
	s.Previous, s.Current, s.Rotated, s.Known = &before, v, now, true
	if s.Pending != nil && s.Pending.Serial <= v.Serial {
		s.Pending = nil
	}
	s.Overruled = slices.DeleteFunc(slices.Clone(s.Overruled), func(o Version) bool { return o.Serial <= v.Serial })
	if len(s.Overruled) == 0 {
		s.Overruled = nil
	}
	return s
}

// Newest returns the serial of the newest password.
func (s Secret) Newest() int64 {
	if s.Pending != nil {
		return s.Pending.Serial
	}
	return s.Current.Serial
}

// Standing is what is known of the database.
type Standing struct {
	// Verifier is the serial of the verifier that the database is to have.
	Verifier int64
	// Taken is the serial of the verifier that the database has, as its primary says. 0 says that
	// nobody knows: the database is stopped, or between two primaries.
	Taken int64
}

// Overtaken reports whether the database is to have a verifier that fits none of the passwords.
// That is so if the home was restored from a backup of before the last change.
func (s Secret) Overtaken(at Standing) bool { return max(at.Verifier, at.Taken) > s.Newest() }

// Status returns what RDS shows of a secret. It is about the password: the password of a database
// that is stopped works as soon as somebody can log in.
func (s Secret) Status(at Standing, now time.Time) string {
	s = s.Taken(at.Taken, now)
	switch {
	case s.Overtaken(at):
		return Impaired
	case s.Pending != nil && now.Sub(s.Pending.Created) > impairedAfter:
		return Impaired
	case s.Pending != nil:
		return Rotating
	case !s.Known:
		return Creating
	case at.Taken != 0 && at.Taken < s.Current.Serial:
		return Rotating // the next primary has not taken it over, and is given it again
	}
	return Active
}

// Due returns when the next password is to be made.
func (s Secret) Due() time.Time {
	since := s.Created
	if s.Rotated.After(since) {
		since = s.Rotated
	}
	return since.AddDate(0, 0, s.Days)
}

// Versions returns the versions by stage.
func (s Secret) Versions() map[string]Version {
	all := map[string]Version{Current: s.Current}
	if s.Previous != nil {
		all[Previous] = *s.Previous
	}
	if s.Pending != nil {
		all[Pending] = *s.Pending
	}
	return all
}

// Sealer seals passwords and opens them.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns a sealer with the home's key.
func NewSealer(key []byte) (*Sealer, error) {
	aead, err := seal.New(key)
	return &Sealer{aead}, err
}

func (s *Sealer) version(of Secret, id string, serial int64, now time.Time) (v Version, password string) {
	password = text(passwordLength, alphabet)
	v = Version{ID: id, Created: now, Serial: serial}
	v.Sealed = s.aead.Seal(nil, nil, []byte(password), of.bound(v))
	return v, password
}

// Open returns the password of a version.
func (s *Sealer) Open(of Secret, v Version) (string, error) {
	password, err := s.aead.Open(nil, nil, v.Sealed, of.bound(v))
	if err != nil {
		return "", fmt.Errorf("open version %s of secret %s: %w", v.ID, of.Name, err)
	}
	return string(password), nil
}

// Value returns what a version holds, in the form that RDS writes.
func (s *Sealer) Value(of Secret, v Version) (string, error) {
	password, err := s.Open(of, v)
	if err != nil {
		return "", err
	}
	out, err := json.Marshal(struct {
		User     string `json:"username"`
		Password string `json:"password"`
	}{of.User, password})
	return string(out), err
}

// bound returns everything that decides who may read the password, and what it is good for.
func (s Secret) bound(v Version) []byte {
	return fmt.Appendf(nil, "secret %q %q %q %q %q %q", s.Account, s.Region, cmp.Or(s.Sealed, s.Database), s.Name, s.User, v.ID)
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	// alphabet has characters that need no quotes in a URL, a shell, a connection string or a file.
	alphabet       = letters + "0123456789-_.~"
	passwordLength = 32
)

func text(n int, of string) string {
	out := make([]byte, n)
	for i := range out {
		at, err := rand.Int(rand.Reader, big.NewInt(int64(len(of))))
		if err != nil {
			panic("secret: no randomness: " + err.Error())
		}
		out[i] = of[at.Int64()]
	}
	return string(out)
}

func newID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("secret: no randomness: " + err.Error())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
