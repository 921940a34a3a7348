package repository

import (
	"crypto/cipher"
	"errors"
	"fmt"

	"howdah/internal/identity/seal"
)

// ErrNote says that a note was not sealed with this passphrase for this part.
var ErrNote = errors.New("the note does not open with the key of its repository")

// SealNote seals what is kept beside a copy in its part of a repository, with what follows from the
// part's passphrase. Without one it returns the text as it is: then nothing there is encrypted.
func SealNote(passphrase, part string, text []byte) ([]byte, error) {
	aead, err := noteSealer(passphrase)
	if err != nil || aead == nil {
		return text, err
	}
	return aead.Seal(nil, nil, text, []byte(part)), nil
}

// OpenNote returns what SealNote was given, or ErrNote.
func OpenNote(passphrase, part string, sealed []byte) ([]byte, error) {
	aead, err := noteSealer(passphrase)
	if err != nil || aead == nil {
		return sealed, err
	}
	text, err := aead.Open(nil, nil, sealed, []byte(part))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNote, part)
	}
	return text, nil
}

func noteSealer(passphrase string) (cipher.AEAD, error) {
	if passphrase == "" {
		return nil, nil //nolint:nilnil // nothing is sealed
	}
	return seal.New(derive([]byte(passphrase), "howdah repository note v1"))
}
