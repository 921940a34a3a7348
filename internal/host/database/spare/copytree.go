package spare

import (
	"fmt"
	"os"

	"howdah/internal/host/tree"
	"howdah/internal/system/fscrypt"
	"howdah/internal/system/owner"
)

// partSuffix marks a copy that may not be whole.
const partSuffix = ".part"

// copyEncrypted copies prepared data into a new directory that is encrypted with a key which the
// kernel knows: a rename does not encrypt. It is there whole, on the disk, or not at all.
func copyEncrypted(from, to string, id fscrypt.ID) error {
	part := to + partSuffix
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return err
	}
	if err := fscrypt.Encrypt(part, id); err != nil {
		return err
	}
	if err := tree.Copy(from, part); err != nil {
		return fmt.Errorf("copy prepared data: %w", err)
	}
	if err := tree.Sync(part); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// copyHanded copies prepared data into the subvolume of a member, with the user's rights: nothing
// is renamed into one. They are there whole, on the disk, or not at all.
func copyHanded(from, to string, user *owner.User) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // only names were read
	part := to + partSuffix
	return user.Do(func() error {
		if err := os.RemoveAll(part); err != nil {
			return err
		}
		if err := os.Mkdir(part, 0o700); err != nil {
			return err
		}
		if err := tree.CopyRoot(source, part); err != nil {
			return fmt.Errorf("copy prepared data: %w", err)
		}
		if err := tree.Sync(part); err != nil {
			return err
		}
		return os.Rename(part, to)
	})
}
