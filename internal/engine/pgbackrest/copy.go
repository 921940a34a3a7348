package pgbackrest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // pgBackRest derives keys with it
	"errors"
	"fmt"

	"howdah/internal/engine/backup"
)

var _ backup.Copier = Engine{}

// BackupPrefix is the directory of a backup.
func (e Engine) BackupPrefix(p backup.Place, label string) string {
	return "backup/" + p.Database + "/" + label + "/"
}

// Heads are the files that list backups, and the versions of PostgreSQL that archived. Of each there
// is a copy. Their [cipher] has what opens manifests and WAL.
func (e Engine) Heads(p backup.Place) []string {
	archive, backups := e.ArchivePrefix(p)+"archive.info", "backup/"+p.Database+"/backup.info"
	return []string{archive + ".copy", archive, backups + ".copy", backups}
}

// Settle expires nothing. But before that pgBackRest looks which backups are there, and lists them.
func (e Engine) Settle(p backup.Place, repository string) backup.Command {
	return e.command(p, repository, "expire")
}

// What pgBackRest encrypts is what `openssl enc -aes-256-cbc -md sha1` encrypts: a word, a salt, and
// blocks whose key follows from the passphrase and the salt.
const (
	saltWord  = "Salted__"
	saltSize  = 8
	headBegin = saltWord + "........"
	keySize   = 32
	// plainBegin is what every head begins with once it is open.
	plainBegin = "[backrest]\n"
)

// errHead says that a head is no head, or that the passphrase is another one.
var errHead = errors.New("it does not open with the passphrase of its part")

// Reseal returns a head that opens with another passphrase.
func (e Engine) Reseal(head []byte, from, to string) ([]byte, error) {
	plain := head
	if from != "" {
		var err error
		if plain, err = open(head, from); err != nil {
			return nil, err
		}
	}
	if !bytes.HasPrefix(plain, []byte(plainBegin)) {
		return nil, errHead
	}
	if to == "" {
		return plain, nil
	}
	return sealed(plain, to)
}

func open(data []byte, passphrase string) ([]byte, error) {
	if len(data) < len(headBegin)+aes.BlockSize || len(data)%aes.BlockSize != 0 || !bytes.HasPrefix(data, []byte(saltWord)) {
		return nil, errHead
	}
	block, iv, err := keyOf(passphrase, data[len(saltWord):len(headBegin)])
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(data)-len(headBegin))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data[len(headBegin):])
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, errHead
	}
	return plain[:len(plain)-padding], nil
}

func sealed(plain []byte, passphrase string) ([]byte, error) {
	salt := make([]byte, saltSize)
	if _, err := rand.Read(salt); err != nil {
		return nil, fmt.Errorf("make a salt: %w", err)
	}
	block, iv, err := keyOf(passphrase, salt)
	if err != nil {
		return nil, err
	}
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	data := append(bytes.Clone(plain), bytes.Repeat([]byte{byte(padding)}, padding)...)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(data, data)
	return append(append([]byte(saltWord), salt...), data...), nil
}

// keyOf derives a key and the first block from a passphrase, as EVP_BytesToKey does with one round.
func keyOf(passphrase string, salt []byte) (cipher.Block, []byte, error) {
	var derived, last []byte
	for len(derived) < keySize+aes.BlockSize {
		h := sha1.New() //nolint:gosec // see above
		h.Write(last)
		h.Write([]byte(passphrase))
		h.Write(salt)
		last = h.Sum(nil)
		derived = append(derived, last...)
	}
	block, err := aes.NewCipher(derived[:keySize])
	return block, derived[keySize : keySize+aes.BlockSize], err
}
