package backup

import "howdah/internal/model/operation"

// The kinds of jobs that hosts do for backups.
const (
	// JobBackup makes a backup. Its arguments are a BackupJob, and its result is a Backup.
	JobBackup = "backup"
	// JobServe lets the backup of a standby use the primary, until the job is forgotten. Its arguments
	// are a ServeJob. It tells of a Served once it can be used, and never ends well.
	JobServe = "serve"
	// JobList lists what is in a repository. Its arguments are a ListJob, its result is a Listed.
	JobList = "list"
	// JobTidy removes what nobody needs. Its arguments are a TidyJob, and its result is a Tidied.
	JobTidy = "tidy"
)

// BackupJob asks the host of a member for a backup of its database. One that finds a whole backup
// with the annotation of the same operation makes no other one.
type BackupJob struct {
	Database   string `json:"database"` // resource id
	Member     string `json:"member"`   // name of the member, such as m1
	Repository string `json:"repository"`
	Full       bool   `json:"full,omitempty"`
	// Operation is in the annotation of the backup.
	Operation string `json:"operation"`
	// Primary says that the member is a standby, and how its host reaches the primary.
	Primary *Served `json:"primary,omitempty"`
}

// ServeJob asks the host of a primary to let the backup of one of its standbys use it.
type ServeJob struct {
	Database string `json:"database"` // resource id
	Member   string `json:"member"`   // the primary's name
	Standby  string `json:"standby"`  // the name of the only member that is let in
}

// Served is how a standby uses its primary. CA is the certificate, as PEM, that signs what the server
// shows. It signs nothing else, and is made for the one job. The rest are paths on the primary's host.
type Served struct {
	Address      string `json:"address"`
	Port         int    `json:"port"`
	CA           []byte `json:"ca"`
	Dir          string `json:"dir"`
	DataDir      string `json:"data_dir"`
	SocketDir    string `json:"socket_dir"`
	PostgresPort int    `json:"postgres_port"`
}

// ListJob asks any host for the backups of a database in a repository, without those that are Known.
type ListJob struct {
	Database   string   `json:"database"`
	Repository string   `json:"repository"`
	Known      []string `json:"known,omitempty"` // labels
}

// Listed is what a ListJob finds, the oldest first. More says that there was no room for all.
type Listed struct {
	Backups []Backup `json:"backups"`
	More    bool     `json:"more,omitempty"`
}

// TidyJob asks any host to remove from the part of a database in a repository what nobody needs.
// No backup of the database is made in the repository at the same time: see Part. It is idempotent,
// and may find less than it is told to keep.
type TidyJob struct {
	Database   string `json:"database"`
	Repository string `json:"repository"`
	// Keep lists the labels that stay, with all that they need. Every other backup goes, also one
	// that has no record. The newest full backup may stay if the engine cannot be without one.
	Keep []string `json:"keep"`
	// Archive is from how many backups back on, counted from the newest of Keep, all WAL is kept. For
	// older backups only the WAL is kept that makes them consistent. It is 1 or more.
	Archive int `json:"archive"`
	// Gone says that the database is no more and that Keep is empty: the whole part goes, with its
	// WAL and marks.
	Gone bool `json:"gone,omitempty"`
}

// Tidied is what came of a TidyJob.
type Tidied struct {
	Removed []string `json:"removed,omitempty"` // labels
}

// Part is the part that a database has of a repository. The record is there as long as there may be
// files, also after the database was deleted.
type Part struct {
	About      operation.About `json:"about"`
	Repository string          `json:"repository"`
	// Operation may change the part now: it makes a backup, or tidies. "" says that none does. An
	// operation takes the part and gives it back in the transactions of its steps. One that has ended
	// has given it back, whatever is said here.
	Operation string `json:"operation,omitempty"`
	// Listed is the id of the restoration of the home (regain.Home) since which backups that have no
	// record were looked for. Nothing is removed from the part before: what was made after the
	// home's own backup is not known.
	Listed string `json:"listed,omitempty"`
}
