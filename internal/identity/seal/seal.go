// Package seal encrypts what the state keeps and only control planes may read. The key is one of
// the home that is not in the state. The seal is bound to what the secret is good for, so that
// whoever can write the state cannot put it to another use. Assignments also seals what everybody
// may read and only control planes may write.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// New returns a sealer with a key of 32 bytes. Call it with no nonce: each sealed text begins with
// a random one.
func New(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a sealer: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make a sealer: %w", err)
	}
	return aead, nil
}
