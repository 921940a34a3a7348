// Package authority keeps the authorities that sign the certificates of databases'
// servers, besides the home's own: they are in the state, so that all control planes
// have the same ones, and their keys are sealed, so that only control planes can use
// them. None is ever removed: clients and servers may have certificates of any.
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

// Record is an authority as it is kept. Written by server only.
type Record struct {
	ID string `json:"id"`
	// Cert is signed by the authority itself, and Cross by the home's; PEM.
	Cert  []byte `json:"cert"`
	Cross []byte `json:"cross"`
	// Sealed is the key, bound to the rest of the record.
	Sealed  []byte    `json:"sealed"`
	Created time.Time `json:"created"`
}

// Default is what an account uses for new databases in a region, in place of the
// home's choice. Written by server only.
type Default struct {
	ID string `json:"id"`
}

// ErrUnknown says that there is no authority of that name.
var ErrUnknown = errors.New("no such authority")

// New makes an authority of this name, which must be one of package spec's. home is
// the home's own, and seal the key that only control planes have.
func New(home *certs.CA, sealKey []byte, id string, now time.Time) (Record, error) {
	line, _, ok := spec.ParseAuthority(id)
	if !ok || id == spec.HomeAuthority {
		return Record{}, fmt.Errorf("make authority %s: %w", id, ErrUnknown)
	}
	ca, cross, err := home.NewAuthority(id, line.Key)
	if err != nil {
		return Record{}, err
	}
	key, err := ca.KeyPEM()
	if err != nil {
		return Record{}, err
	}
	aead, err := seal.New(sealKey)
	if err != nil {
		return Record{}, err
	}
	r := Record{ID: id, Cert: ca.CertPEM, Cross: cross, Created: now}
	r.Sealed = aead.Seal(nil, nil, key, r.bound())
	return r, nil
}

// Open is the authority with its key.
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

// bound has the key fit this record only: whoever can write the state cannot have
// one authority sign for another.
func (r Record) bound() []byte { return fmt.Appendf(nil, "authority %q %q %q", r.ID, r.Cert, r.Cross) }

// Get is the authority of this name, "" or the home's included. It asks the store:
// a mirror may not have a new one yet.
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

// Bundle is what clients are to trust: the home's authority and all others, in PEM.
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
