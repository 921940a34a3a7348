package member

import (
	"errors"
	"time"

	"howdah/internal/model/lsn"
)

// Mark is a moment that a restore certainly reaches: a commit at this time, or later, lies before
// LSN, and every file of WAL up to LSN is in the repository.
type Mark struct {
	At       time.Time `json:"at"`
	Timeline int       `json:"timeline"`
	LSN      lsn.LSN   `json:"lsn"`
}

// Archived is what a primary's host says of the archive of its database's WAL.
type Archived struct {
	// Restorable is the newest moment that a restore reaches; zero: none.
	Restorable Mark `json:"restorable,omitzero"`
	// Failing says why WAL cannot be archived now; Since is when that began.
	Failing string    `json:"failing,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Waiting is how many bytes of WAL wait to be archived.
	Waiting int64 `json:"waiting,omitempty"`
	// Broken is the first file of WAL that was given up. A restore cannot go past it, but from a
	// backup that began after it. "" says that there is none.
	Broken string `json:"broken,omitempty"`
}

// Repository is what opens the part of one database in a repository. A control plane tells it a
// host that has work there. It has secrets: a host keeps it in files of root alone.
type Repository struct {
	Name string `json:"name"`
	ID   string `json:"id"`   // that the repository's marker shows
	Kind string `json:"kind"` // as a backup.RepositoryKind: directory or s3
	// As in backup.Repository.
	Path      string `json:"path,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`
	Region    string `json:"region,omitempty"`
	Bucket    string `json:"bucket,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	CA        string `json:"ca,omitempty"`
	AccessKey string `json:"access_key,omitempty"`
	Secret    string `json:"secret,omitempty"`
	// Passphrase encrypts the part of the database. "" says that nothing is encrypted.
	Passphrase string `json:"passphrase,omitempty"`
}

// The features that a database may have a role for, as RDS calls them.
const (
	Export = "s3Export"
	Import = "s3Import"
)

// ErrNoRole says that a database has no role for what it wants to do. The rest of the error says what to
// do about it, and has no secrets.
var ErrNoRole = errors.New("the database has no role for that")

// Bucket is what lets a database into a bucket of an S3 server. A host gets it from a control plane
// for one export or import, and keeps it no longer.
type Bucket struct {
	Role string `json:"role"` // its name
	// As in spec.BucketRole.
	Endpoint  string `json:"endpoint"`
	Region    string `json:"region,omitempty"`
	Bucket    string `json:"bucket"`
	Prefix    string `json:"prefix,omitempty"`
	CA        string `json:"ca,omitempty"`
	AccessKey string `json:"access_key"`
	Secret    string `json:"secret"`
}
