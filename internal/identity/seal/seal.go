// Package seal encrypts what the state keeps and only control planes may read: with a key
// of the home that is not in the state, and bound to what the secret is
// good for, so that whoever can write the state cannot put it to another use. And it seals what
// everybody may read and only control planes may have written (Assignments).
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// New makes a sealer of a key of 32 bytes. It is called with no nonce: each sealed text
// begins with a random one.
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
