package home

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// SealKey returns the key that seals secrets which all control planes of the home must read and its
// hosts must not, although both read the state. It has 32 bytes, and only control planes hold it.
//
// It is derived from the authority's private key, once. It stays what it is if the authority is
// replaced. Control planes that join get it with the join tokens.
func (h *Home) SealKey() ([]byte, error) {
	join, err := h.Join()
	if err != nil {
		return nil, err
	}
	if len(join.SealKey) > 0 {
		return join.SealKey, nil
	}
	ca, err := h.CA()
	if err != nil {
		return nil, err
	}
	secret, err := ca.KeyPEM()
	if err != nil {
		return nil, err
	}
	if join.SealKey, err = hkdf.Key(sha256.New, secret, []byte(h.ID), "howdah seal", 32); err != nil {
		return nil, fmt.Errorf("make seal key: %w", err)
	}
	if err := writeJSON(h.path(joinFile), join, 0o600); err != nil {
		return nil, err
	}
	return join.SealKey, nil
}
