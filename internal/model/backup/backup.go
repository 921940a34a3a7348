// Package backup has the words of backups: repositories, what lies in them, snapshots, and where a
// restored database comes from. It is pure. docs/design/backup.md says how they work together.
package backup

import (
	"slices"
	"time"

	"howdah/internal/model/lsn"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
)

// RepositoryKind is where a repository keeps its files.
type RepositoryKind string

// The kinds of repositories.
const (
	Directory RepositoryKind = "directory"
	S3        RepositoryKind = "s3"
)

// Repository is a place for backups and WAL. Every database has a part of its own in it, below its
// resource id. Server writes the record.
type Repository struct {
	Name string `json:"name"`
	// ID never changes, and is in the repository's marker. A directory that shows another id is
	// another repository, or is not mounted.
	ID   string         `json:"id"`
	Kind RepositoryKind `json:"kind"`
	// Path is the directory, as every host sees it.
	Path string `json:"path,omitempty"`
	// Endpoint is the URL of an S3 server. Prefix is "" or ends in a slash. CA is the certificate,
	// as PEM, that signs the server's; "" stands for the system's authorities.
	Endpoint string `json:"endpoint,omitempty"`
	Region   string `json:"region,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	CA       string `json:"ca,omitempty"`
	// AccessKey and Secret log in to S3. Secret is sealed with the home's key.
	AccessKey string `json:"access_key,omitempty"`
	Secret    []byte `json:"secret,omitempty"`
	// Key is the key from which the passphrase of each database follows: see package
	// identity/repository. It is sealed with the home's key. nil says that nothing is encrypted.
	Key []byte `json:"key,omitempty"`
	// Exported is when an operator took the key out last. Without that, whoever loses the home
	// loses all backups.
	Exported time.Time `json:"exported,omitzero"`
	// Default says that new databases are backed up here. One repository of the home is it.
	Default bool `json:"default,omitempty"`
	// Copies says that copies for StartDBInstanceAutomatedBackupsReplication and CopyDBSnapshot
	// with another region go here.
	Copies  bool      `json:"copies,omitempty"`
	Created time.Time `json:"created"`
}

// Encrypted reports whether what is written is encrypted.
func (r Repository) Encrypted() bool { return len(r.Key) > 0 }

// Kind of a backup, as the engine makes it.
type Kind string

// The kinds. An incremental backup needs the one before it, and all that this one needs.
const (
	Full        Kind = "full"
	Incremental Kind = "incr"
)

// Backup is one backup that is whole in a repository. The runner of operations writes the record,
// in the transaction that ends the operation which made it, and removes it.
type Backup struct {
	Database   string `json:"database"` // resource id
	Repository string `json:"repository"`
	Label      string `json:"label"` // the engine's name for it
	// CopyOf is the Lineage of the backup that it was copied from, or "". Then Database is the name of
	// the copy's part.
	CopyOf string `json:"copy_of,omitempty"`
	Kind   Kind   `json:"kind"`
	// Needs lists the labels of the backups without which this one is of no use.
	Needs []string `json:"needs,omitempty"`
	// Operation made it. Automated says that it belongs to automated backups.
	Operation string `json:"operation"`
	Automated bool   `json:"automated,omitempty"`
	Major     int    `json:"major"`
	// Member is the name of the one whose files were copied, and Standby says that it was a standby.
	// "" stands for a primary of which nobody noted the name.
	Member  string `json:"member,omitempty"`
	Standby bool   `json:"standby,omitempty"`
	// The data are consistent from Stop on: an earlier moment cannot be restored from this backup.
	Start    time.Time `json:"start"`
	Stop     time.Time `json:"stop"`
	Timeline int       `json:"timeline"`
	StartLSN lsn.LSN   `json:"start_lsn"`
	StopLSN  lsn.LSN   `json:"stop_lsn"`
	// Gap is the newest moment that could be restored when WAL before this backup was given up: what
	// lies after Gap and before Stop cannot be restored. It is zero if nothing was given up.
	Gap time.Time `json:"gap,omitzero"`
	// Alone says that WAL after the backup was removed, or may have been: of it only the moment of its
	// end can be restored.
	Alone bool `json:"alone,omitempty"`
	// Size is that of the database, Stored what the backup added to the repository, in bytes.
	Size   int64 `json:"size"`
	Stored int64 `json:"stored"`
	// Damaged says what a drill or a check found, or is "".
	Damaged string `json:"damaged,omitempty"`
	// Located says that what is damaged are files of this backup, and not of one that it needs.
	Located bool `json:"located,omitempty"`
	// Heals says that WAL was lost between the backup before and this one: what is older cannot be
	// restored past that, and this one needs nothing of it.
	Heals bool `json:"heals,omitempty"`
	// Proved is when it was restored last by a drill.
	Proved time.Time `json:"proved,omitzero"`
	// Found is when it was found in the repository, after the home had been restored from a state
	// that does not know it. Who wants it is not known either, so it stays: see Holdings.Keep.
	Found time.Time `json:"found,omitzero"`
}

// SnapshotState is the status of a snapshot, in RDS's words.
type SnapshotState string

// The states.
const (
	Creating  SnapshotState = "creating"
	Copying   SnapshotState = "copying"
	Available SnapshotState = "available"
	Failed    SnapshotState = "failed"
)

// Snapshot is a DB snapshot, or a DB cluster snapshot. Server writes it when it is asked for,
// modified or deleted. The operation that makes it writes it once more when it is done.
type Snapshot struct {
	spec.Scope
	Name string `json:"name"` // lower case; rds:NAME-2026-11-24-16-00 if Automated
	// Automated says that it was made in the backup window, and goes with the retention period.
	Automated bool          `json:"automated,omitempty"`
	State     SnapshotState `json:"state"`
	// Instance or Cluster is the database as it was then. Classes has those of the cluster's
	// instances. Exactly one of the two is set.
	Instance   *spec.Instance `json:"instance,omitempty"`
	Cluster    *spec.Cluster  `json:"cluster,omitempty"`
	Database   string         `json:"database"`
	Repository string         `json:"repository"`
	// Part is the part of the repository that has the backup, if it is a copy from another repository;
	// "": it is in the part of the database.
	Part      string `json:"part,omitempty"`
	Label     string `json:"label,omitempty"` // "" until it is available
	Operation string `json:"operation,omitempty"`
	// Asked is when it was asked for, Taken the moment of the data, Done when it was available.
	Asked  time.Time `json:"asked"`
	Taken  time.Time `json:"taken,omitzero"`
	Done   time.Time `json:"done,omitzero"`
	Size   int64     `json:"size,omitempty"`   // of the database, bytes
	Stored int64     `json:"stored,omitempty"` // that it added
	Reason string    `json:"reason,omitempty"` // why it failed
	// First is Taken of the first snapshot that it is a copy of; zero: it is no copy.
	First time.Time `json:"first,omitzero"`
	// CopyOf is the ARN of the snapshot that it is a copy of, or "".
	CopyOf string     `json:"copy_of,omitempty"`
	KMSKey string     `json:"kms_key,omitempty"` // id; "": the storage was not encrypted
	Shared []string   `json:"shared,omitempty"`  // accounts that may restore it; all: everyone
	Tags   []spec.Tag `json:"tags"`
}

// Common returns what the record keeps of the database.
func (s Snapshot) Common() spec.Common {
	if s.Cluster != nil {
		return s.Cluster.Common
	}
	return s.Instance.Common
}

// Automated is what stays of the automated backups of a database: of one that was deleted, or
// whose retention was set to 0. It is also kept for one that lives, as soon as it has a backup,
// with the database as it was last. Server writes the record when the database is created, changed
// or deleted; the runner of operations removes it with the last backup.
type Automated struct {
	spec.Scope
	Name     string         `json:"name"`
	Database string         `json:"database"`
	Instance *spec.Instance `json:"instance,omitempty"`
	Cluster  *spec.Cluster  `json:"cluster,omitempty"`
	// Repository has the backups; Second has copies, or is "".
	Repository string `json:"repository"`
	Second     string `json:"second,omitempty"`
	// SecondRegion is the region in which users see the copies, and SecondKey the id of the KMS key of
	// there that a database made of them is encrypted with.
	SecondRegion string    `json:"second_region,omitempty"`
	SecondKey    string    `json:"second_key,omitempty"`
	Retention    int       `json:"retention"` // days
	Created      time.Time `json:"created"`
	// Retained says that the database was deleted at Deleted, and that the backups stay until their
	// retention is over. Until is the newest moment that can be restored.
	Retained bool      `json:"retained,omitempty"`
	Deleted  time.Time `json:"deleted,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	// Window is when the backup window opened for which an automated backup was begun last. Attempt
	// counts the operations that were begun for it. Made is the window of the last that was made.
	Window  time.Time `json:"window,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
	Made    time.Time `json:"made,omitzero"`
	// Healing is when a backup was begun last because WAL had been lost.
	Healing time.Time `json:"healing,omitzero"`
}

// The kinds of operations about backups.
var (
	// Take makes a backup: for a snapshot, or an automated one.
	Take = operation.Kind{Name: "backup", Within: 24 * time.Hour, Excludes: []operation.Deed{operation.Delete}}
	// Final makes a snapshot, and deletes the database after it.
	Final = operation.Kind{Name: "final-snapshot", Within: 24 * time.Hour, Excludes: []operation.Deed{operation.Delete, operation.Change}}
	// Copy copies a snapshot.
	Copy = operation.Kind{Name: "copy-snapshot", Within: 24 * time.Hour}
	// Tidy removes from a repository what nobody needs.
	Tidy = operation.Kind{Name: "tidy-backups", Within: 6 * time.Hour}
	// Drill restores a backup, and looks whether it is whole.
	Drill = operation.Kind{Name: "restore-drill", Within: 24 * time.Hour}
)

// TakeArgs are the arguments of Take and Final.
type TakeArgs struct {
	// Snapshot is the key of the snapshot that it makes; "": it makes none.
	Snapshot string `json:"snapshot"`
	// Repository has the backup.
	Repository string `json:"repository"`
	Automated  bool   `json:"automated,omitempty"`
	// Window is that of an automated backup: see Automated.
	Window time.Time `json:"window,omitzero"`
	// Full asks for a full backup; else one is made if the chain calls for it (NeedsFull).
	Full bool `json:"full,omitempty"`
	// DropAutomated is of Final: the automated backups go with the database.
	DropAutomated bool `json:"drop_automated,omitempty"`
}

// TidyArgs are the arguments of Tidy.
type TidyArgs struct {
	Repository string `json:"repository"`
}

// CopyArgs are the arguments of Copy. The backup of one snapshot is copied into another repository,
// into the part that the operation is about.
type CopyArgs struct {
	Snapshot   string `json:"snapshot"` // key of the copy
	Repository string `json:"repository"`
	// Source has the backup, with this label.
	Source PartRef `json:"source"`
	Label  string  `json:"label"`
	// From is the name of the snapshot to copy, and Region where it is.
	From   string `json:"from"`
	Region string `json:"region"`
}

// Keep keeps a database as it is in a snapshot of it. Exactly one of the two is given.
func (s *Snapshot) Keep(i *spec.Instance, c *spec.Cluster) { s.Instance, s.Cluster = kept(i, c) }

// Keep keeps a database as it is, in the record of its automated backups.
func (a *Automated) Keep(i *spec.Instance, c *spec.Cluster) { a.Instance, a.Cluster = kept(i, c) }

func kept(i *spec.Instance, c *spec.Cluster) (*spec.Instance, *spec.Cluster) {
	if c != nil {
		next := *c
		next.Forget()
		return nil, &next
	}
	next := *i
	next.Forget()
	return &next, nil
}

// SharedWith reports whether users of another account may restore the snapshot.
func (s Snapshot) SharedWith(account string) bool {
	return s.Public() || slices.Contains(s.Shared, account)
}

// Everyone in Shared says that everyone may restore the snapshot.
const Everyone = "all"

// Public reports whether everyone may restore the snapshot.
func (s Snapshot) Public() bool { return slices.Contains(s.Shared, Everyone) }

// Original is the moment of the data, also of a copy. It is zero until that is known.
func (s Snapshot) Original() time.Time {
	if !s.First.IsZero() {
		return s.First
	}
	return s.Taken
}
