package admin

import "time"

// BackupsRequest names a database: by its name in the caller's account and region, as instance/NAME
// or cluster/NAME if two share it, or by its resource id. "" stands for all databases, of all
// accounts and regions, where a verb may show several.
type BackupsRequest struct {
	Name string `json:"name,omitempty"`
}

// BackupsAnswer has backups, by database, the newest first.
type BackupsAnswer struct {
	Backups []Backup `json:"backups"`
}

// Backup is a backup of a database that is whole in a repository.
type Backup struct {
	Database   string `json:"database"` // its name; the resource id if nobody knows a name
	ResourceID string `json:"resource_id"`
	Deleted    bool   `json:"deleted,omitempty"` // the database is no more
	Account    string `json:"account,omitempty"` // "" if nobody knows it
	Region     string `json:"region,omitempty"`
	Repository string `json:"repository"`
	Label      string `json:"label"`
	Kind       string `json:"kind"` // full or incr
	// Taken is the moment of its data.
	Taken time.Time `json:"taken"`
	// Size is that of the database, and Stored what the backup added to the repository, in bytes.
	Size      int64 `json:"size"`
	Stored    int64 `json:"stored"`
	Automated bool  `json:"automated"`
	// Member is the one whose files were copied, and Standby says that it was a standby. "": nobody
	// noted it.
	Member  string `json:"member,omitempty"`
	Standby bool   `json:"standby,omitempty"`
	// Snapshots are the names of the snapshots that need it, their own backup or one that builds
	// upon it.
	Snapshots []string `json:"snapshots"`
	// Only says that of it only the moment Taken can be restored, because the WAL after it is gone.
	Only bool `json:"only,omitempty"`
	// Proved is when a drill restored it last. Damaged says what a drill or a check found.
	Proved  time.Time `json:"proved,omitzero"`
	Damaged string    `json:"damaged,omitempty"`
	// Doubt says that a backup which needs this one is damaged.
	Doubt     bool   `json:"doubt,omitempty"`
	Operation string `json:"operation"` // that made it
}

// States of the archive of a database's WAL.
const (
	ArchiveWorks   = "works"
	ArchiveFails   = "fails"   // WAL waits
	ArchiveBroken  = "broken"  // WAL was given up
	ArchiveUnknown = "unknown" // no primary says anything of it
)

// DatabaseBackups is in short what backups of a database are good for. What cannot be said for sure
// is zero.
type DatabaseBackups struct {
	Retention int `json:"retention"` // days of automated backups; 0: there are none
	Count     int `json:"count"`     // of backups
	// Earliest and Restorable are the oldest and the newest moment that can be restored.
	Earliest   time.Time `json:"earliest,omitzero"`
	Restorable time.Time `json:"restorable,omitzero"`
	// Proved is when a drill worked last. Failed says what the newest drill found to be wrong.
	Proved time.Time `json:"proved,omitzero"`
	Failed string    `json:"failed,omitempty"`
}

// BackupStatus says how the backups of a database are.
type BackupStatus struct {
	Short      DatabaseBackups `json:"short"`
	Database   string          `json:"database"`
	ResourceID string          `json:"resource_id"`
	Account    string          `json:"account"`
	Region     string          `json:"region"`
	Time       time.Time       `json:"time"`
	Repository string          `json:"repository,omitempty"` // "": there is none
	Stored     int64           `json:"stored"`               // bytes that the backups there take, without WAL

	Archive string `json:"archive"` // one of the states above
	// Failing says why WAL cannot be archived, and since when. Broken is the first file of WAL that
	// was given up. Waiting is how many bytes of WAL wait.
	Failing string    `json:"failing,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Broken  string    `json:"broken,omitempty"`
	Waiting int64     `json:"waiting,omitempty"`

	// Newest is the newest backup, and Window when the backup window opens next.
	Newest *Backup   `json:"newest,omitempty"`
	Window time.Time `json:"window,omitzero"`
	// Making and Drilling are the operations under way that make a backup, or try one.
	Making   string    `json:"making,omitempty"`
	Drilling string    `json:"drilling,omitempty"`
	Drill    *Drill    `json:"drill,omitempty"` // the newest
	Problems []Problem `json:"problems"`
}

// BackupBeginRequest begins an operation on the backups of a database. The caller chooses its id. To
// ask twice with the same id is to ask once.
type BackupBeginRequest struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// BackupBegun is the operation that was begun, now or by an earlier call with the same id.
type BackupBegun struct {
	Operation  string    `json:"operation"`
	Kind       string    `json:"kind"`
	Database   string    `json:"database"` // its name
	ResourceID string    `json:"resource_id"`
	Began      time.Time `json:"began"`
}

// DrillsAnswer has the newest drill of each database, by name.
type DrillsAnswer struct {
	Drills []Drill `json:"drills"`
}

// Drill is what was measured when a backup was restored to a place that was thrown away.
type Drill struct {
	Database   string    `json:"database"`
	ResourceID string    `json:"resource_id"`
	Repository string    `json:"repository"`
	Operation  string    `json:"operation"`
	Host       string    `json:"host"`
	Label      string    `json:"label"` // of the backup
	Began      time.Time `json:"began"`
	Ended      time.Time `json:"ended"`
	// Failed says what is wrong. It is "" if all was well. Restored says that the backup could be
	// restored, so that what follows was measured.
	Failed   string `json:"failed,omitempty"`
	Restored bool   `json:"restored"`
	// RTO is how long it took until the database would have taken clients: Files and Replay.
	RTO    float64 `json:"rto_seconds"`
	Files  float64 `json:"files_seconds"`
	Replay float64 `json:"replay_seconds"`
	Check  float64 `json:"check_seconds"`
	// RPO is how much would have been lost if the database had been lost when the drill began. It is
	// absent if nobody knows.
	RPO *float64 `json:"rpo_seconds,omitempty"`
	// Newest is the time of the newest commit that was restored, and Promised the newest moment that
	// could be restored by what was known when the drill began.
	Newest    time.Time `json:"newest,omitzero"`
	Promised  time.Time `json:"promised,omitzero"`
	Bytes     int64     `json:"bytes"`
	Databases int       `json:"databases"`
	Tables    int       `json:"tables"`
	Indexes   int       `json:"indexes"`
	// Damaged lists what is damaged, in PostgreSQL's words. Faults counts all of it.
	Damaged []string `json:"damaged,omitempty"`
	Faults  int      `json:"faults,omitempty"`
	// Unlimited says what the host could not limit of the drill, and why, a line each.
	Unlimited []string `json:"unlimited,omitempty"`
	// Worked is when a drill worked last, this one or an earlier one.
	Worked time.Time `json:"worked,omitzero"`
}

// SnapshotsAnswer has snapshots, by database, the newest first.
type SnapshotsAnswer struct {
	Snapshots []Snapshot `json:"snapshots"`
}

// Snapshot is a DB snapshot, or a DB cluster snapshot.
type Snapshot struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`     // of the database: instance or cluster
	Database   string `json:"database"` // its name when the snapshot was made
	ResourceID string `json:"resource_id"`
	Account    string `json:"account"`
	Region     string `json:"region"`
	Automated  bool   `json:"automated"`
	State      string `json:"state"` // creating, copying, available or failed
	Reason     string `json:"reason,omitempty"`
	// Taken is the moment of its data; zero: it is not there yet.
	Taken      time.Time `json:"taken,omitzero"`
	Asked      time.Time `json:"asked"`
	Size       int64     `json:"size"`
	Stored     int64     `json:"stored"`
	Repository string    `json:"repository"`
	Label      string    `json:"label,omitempty"`
	Operation  string    `json:"operation,omitempty"` // that makes it
	// CopyOf is the ARN of the snapshot that it is a copy of, or "".
	CopyOf string `json:"copy_of,omitempty"`
	// Proved is when a drill restored its backup last, and Damaged says what is wrong with that.
	Proved  time.Time `json:"proved,omitzero"`
	Damaged string    `json:"damaged,omitempty"`
}
