package backup

// Copier is an engine whose backups can be copied to another part, object by object. What it wrote
// names neither the database nor the repository, and only a few small objects, the heads, are
// encrypted with the passphrase of the part itself: they have the keys of all else. So a copy has
// the same objects, and heads that open with the passphrase of their new part.
type Copier interface {
	// BackupPrefix is what the keys of all objects of one backup begin with, below the part of
	// Place.Database. ArchivePrefix is the same for WAL.
	BackupPrefix(p Place, label string) string
	// Heads lists the keys of the heads, below the part. They are written last, in this order: a part
	// without them has nothing.
	Heads(p Place) []string
	// Reseal returns a head that opens with another passphrase; "" is none. It fails if the head does
	// not open with the first one. What it returns is never in the clear unless to is "".
	Reseal(head []byte, from, to string) ([]byte, error)
	// Settle has a part list the backups that are whole in it, and no others.
	Settle(p Place, repository string) Command
}
