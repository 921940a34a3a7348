// Package authority keeps the authorities that sign the certificates of databases' servers, besides
// the home's own. They are in the state, so that all control planes have the same ones. Their keys
// are sealed, so that only control planes can use them. No authority is ever removed, because
// clients and servers may have certificates of any.
package authority

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/seal"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Record is an authority as it is kept. Only server writes it.
type Record struct {
	ID string `json:"id"`
	// Cert is signed by the authority itself, and Cross by the home's. Both are PEM.
	Cert  []byte `json:"cert"`
	Cross []byte `json:"cross"`
	// Sealed is the key, bound to the rest of the record.
	Sealed  []byte    `json:"sealed"`
	Created time.Time `json:"created"`
}

// Default is the authority that an account uses for new databases in a region, in place of the
// home's choice. Only server writes it.
type Default struct {
	ID string `json:"id"`
}

// ErrUnknown says that no authority has this name.
var ErrUnknown = errors.New("no such authority")

// New makes an authority of this name, which package spec must know. home is the home's own
// authority, and seal is the key that only control planes have.
func New(home *certs.CA, sealKey []byte, id string, now time.Time) (Record, error) {
	line, _, ok := spec.ParseAuthority(id)
	if !ok || id == spec.HomeAuthority {
		return Record{}, fmt.Errorf("make authority %s: %w", id, ErrUnknown)
	}
	ca, cross, err := home.NewAuthority(id, line.Key)
	if err != nil {
		return Record{}, err
	}
	return sealed(Record{ID: id, Cross: cross, Created: now}, ca, sealKey)
}

// sealed returns the record with an authority and its key, which only control planes can open.
func sealed(r Record, ca *certs.CA, sealKey []byte) (Record, error) {
	key, err := ca.KeyPEM()
	if err != nil {
		return Record{}, err
	}
	aead, err := seal.New(sealKey)
	if err != nil {
		return Record{}, err
	}
	r.Cert = ca.CertPEM
	r.Sealed = aead.Seal(nil, nil, key, r.bound())
	return r, nil
}

// Open returns the authority with its key.
func (r Record) Open(sealKey []byte) (*certs.CA, error) {
	aead, err := seal.New(sealKey)
	if err != nil {
		return nil, err
	}
	key, err := aead.Open(nil, nil, r.Sealed, r.bound())
	if err != nil {
		return nil, fmt.Errorf("open the key of authority %s: %w", r.ID, err)
	}
	return certs.ParseAuthority(r.Cert, r.Cross, key)
}

// bound returns what binds the key to this record. So whoever can write the state cannot have one
// authority sign for another.
func (r Record) bound() []byte { return fmt.Appendf(nil, "authority %q %q %q", r.ID, r.Cert, r.Cross) }

// Get returns the authority of this name. "" names the home's own. It asks the store, because a
// mirror may not have a new authority yet.
func Get(ctx context.Context, store *state.Store, home *certs.CA, seal func() ([]byte, error), id string) (*certs.CA, error) {
	if id == "" || id == spec.HomeAuthority {
		return home, nil
	}
	r, err := state.Get[Record](ctx, store, state.Authority(id))
	if errors.Is(err, state.ErrNotFound) {
		return nil, fmt.Errorf("authority %s: %w", id, ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	key, err := seal()
	if err != nil {
		return nil, err
	}
	return r.Value.Open(key)
}

// Bundle returns the certificates that clients are to trust, in PEM: the home's authority and all
// others.
func Bundle(home []byte, all []Record) []byte {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Record) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	out := slices.Clone(home)
	for _, r := range sorted {
		out = append(out, r.Cert...)
	}
	return out
}
