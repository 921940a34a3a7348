package backup

import (
	"slices"
	"strings"
	"time"
)

// CopyPart is what the names of parts begin with that have copies. A copy of a backup in another
// repository has a part of its own there, in which it lies as the backup of a database would that
// had the part's name as its resource id.
const CopyPart = "copy-"

// IsCopy reports whether a part, which records name by the resource id of its database, has a copy.
func IsCopy(part string) bool { return strings.HasPrefix(part, CopyPart) }

// Holder returns whose part of the repository has the backup of a snapshot: that of its database, or
// a part of its own.
func (s Snapshot) Holder() string {
	if s.Part != "" {
		return s.Part
	}
	return s.Database
}

// Storage is how many GiB the database had; 0: as much as it needed.
func (s Snapshot) Storage() int {
	if s.Cluster != nil {
		return s.Cluster.Storage
	}
	return s.Instance.Storage
}

// Lineage says which backup this one has the data of: itself, or the one that was copied first.
func (b Backup) Lineage() string {
	if b.CopyOf != "" {
		return b.CopyOf
	}
	return b.Database + "/" + b.Repository + "/" + b.Label
}

// PartRef names a part of a repository.
type PartRef struct {
	Database   string `json:"database"` // or the name of a part that has a copy
	Repository string `json:"repository"`
}

// JobCopy copies a backup from one repository into another. Its arguments are a CopyJob, and its
// result is a Copied.
const JobCopy = "copy"

// CopyJob asks any host to copy a backup, with all that it needs, into a part that has nothing else.
// It is idempotent: what is there is not copied again. At its end the copy has been read again, with
// the key of its own repository alone.
type CopyJob struct {
	Database   string  `json:"database"` // name of the part
	Repository string  `json:"repository"`
	Source     PartRef `json:"source"`
	Backup     Backup  `json:"backup"` // as it is in the source
	// MaxBytes bounds what is copied: the source may be written to by whoever owns its database.
	MaxBytes int64 `json:"max_bytes"`
	// Note is kept beside the copy.
	Note CopyNote `json:"note"`
}

// Copied is what came of a CopyJob.
type Copied struct {
	Stored int64 `json:"stored"` // bytes
}

// CopyNote is kept with each copy that is whole, sealed with the key of its repository: by it the copy
// is known again after the home was restored from a state that does not know it.
type CopyNote struct {
	Snapshot Snapshot `json:"snapshot"`
	Backup   Backup   `json:"backup"`
}

// NoteKey is where the note of a copy is, below its part. No member can write there.
const NoteKey = "howdah/copy"

// CopyOf is the record of a backup that is copied into a part. Of it only the moment of its end can
// be restored.
func CopyOf(b Backup, to PartRef, operation string, stored int64) Backup {
	c := b
	c.CopyOf = b.Lineage()
	c.Database, c.Repository, c.Operation, c.Stored, c.Alone = to.Database, to.Repository, operation, stored, true
	c.Automated, c.Heals, c.Gap, c.Proved, c.Found = false, false, time.Time{}, time.Time{}, time.Time{}
	c.Needs = slices.Clone(b.Needs)
	return c
}

// Twin returns the backup in a repository that has the same data as b, if there is one that is not
// damaged. all are all backups that are known.
func Twin(all []*Backup, b Backup, repository string) (*Backup, bool) {
	n := slices.IndexFunc(all, func(o *Backup) bool {
		return o.Repository == repository && o.Damaged == "" && o.Lineage() == b.Lineage()
	})
	if n < 0 {
		return nil, false
	}
	return all[n], true
}

// MostCopied is how many bytes a copy of a backup has at most, of a database with so many GiB of
// storage: all of it for each backup of the chain, and again for WAL. Where nothing bounds the storage
// (0) the size that the database had does.
func MostCopied(b Backup, storage int) int64 {
	each := int64(storage+1) << 30
	if storage == 0 {
		each = 4*min(b.Size, 1<<48) + 16<<30
	}
	return int64(len(b.Needs)+2) * each
}
