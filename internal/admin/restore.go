package admin

import "time"

// RestorePoint is what to restore: a snapshot, or a database at a moment.
type RestorePoint struct {
	// Snapshot is the name or the ARN of a snapshot. It excludes all that follows.
	Snapshot string `json:"snapshot,omitempty"`
	// Of a database exactly one of these is given. Live is the database as it runs: a clone. Time is a moment, to the microsecond: everything
	// that was committed by then, and nothing later. Latest is all that can be restored. LSN is a
	// position of WAL: everything up to it. Before is the id of a transaction: everything before it
	// ended.
	Live   bool       `json:"live,omitempty"`
	Time   *time.Time `json:"time,omitempty"`
	Latest bool       `json:"latest,omitempty"`
	LSN    string     `json:"lsn,omitempty"`
	Before string     `json:"before,omitempty"`
}

// RestoreRequest asks for a new database with data that another one had. What is not given is as the
// other one had it, but for groups of parameters and of networks: those are the default ones, as on
// RDS.
type RestoreRequest struct {
	Name string `json:"name"`
	// From is the database, also one that was deleted: its name, instance/NAME, cluster/NAME, or its
	// resource id. It is "" for a snapshot.
	From string `json:"from,omitempty"`
	RestorePoint
	Class          string `json:"class,omitempty"`
	StorageGiB     int32  `json:"storage_gib,omitempty"`
	Port           int32  `json:"port,omitempty"`
	MultiAZ        *bool  `json:"multi_az,omitempty"`
	Zone           string `json:"zone,omitempty"` // its letter
	ParameterGroup string `json:"parameter_group,omitempty"`
	Protect        bool   `json:"protect,omitempty"` // from deletion
	DryRun         bool   `json:"dry_run,omitempty"`
}

// RestorePlan is what a database is restored from, and to what.
type RestorePlan struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"` // instance or cluster
	ResourceID string `json:"resource_id,omitempty"`
	Class      string `json:"class,omitempty"`
	StorageGiB int    `json:"storage_gib,omitempty"`
	MultiAZ    bool   `json:"multi_az"`
	// From is the name of the database, also of one that is no more, and FromID its resource id.
	From   string `json:"from"`
	FromID string `json:"from_resource_id"`
	// Live says that it is a clone of the database as it runs. There is no backup then, and all of it
	// is "". Thin says that it shares blocks with the database, and takes no room at first.
	Live bool `json:"live,omitempty"`
	Thin bool `json:"thin,omitempty"`
	// The backup to begin with: its data are of Taken, and Size is how many bytes are copied.
	Repository string    `json:"repository,omitempty"`
	Label      string    `json:"label,omitempty"`
	BackupKind string    `json:"backup_kind,omitempty"`
	Taken      time.Time `json:"taken,omitzero"`
	Size       int64     `json:"size"`
	// Until is the moment that is restored; zero: it is said by LSN or Before, or it is not known yet.
	Until  time.Time `json:"until,omitzero"`
	Latest bool      `json:"latest,omitempty"`
	LSN    string    `json:"lsn,omitempty"`
	Before string    `json:"before,omitempty"`
	// Hosts are those that the members would get now: none of an Aurora cluster, which is restored
	// by the first instance that is added to it.
	Hosts  []string `json:"hosts"`
	DryRun bool     `json:"dry_run,omitempty"`
}
