package admin

import "time"

// RepositoryAddRequest adds a repository for backups, in a directory or in a bucket of an S3
// server. With DryRun it only says whether that would work.
type RepositoryAddRequest struct {
	Name string `json:"name"`
	Path string `json:"path,omitempty"` // a directory, as every host sees it; or:
	// As in backup.Repository.
	Endpoint  string `json:"endpoint,omitempty"`
	Region    string `json:"region,omitempty"`
	Bucket    string `json:"bucket,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	CA        string `json:"ca,omitempty"`
	AccessKey string `json:"access_key,omitempty"`
	Secret    string `json:"secret,omitempty"`
	// Unencrypted says that nothing is encrypted. KeySecret is an exported key; "": a new one is
	// made.
	Unencrypted bool   `json:"unencrypted,omitempty"`
	KeySecret   string `json:"key_secret,omitempty"`
	// Adopt takes a place that is a repository already: of another home, or of this one before it
	// was made anew.
	Adopt   bool `json:"adopt,omitempty"`
	Default bool `json:"default,omitempty"`
	Copies  bool `json:"copies,omitempty"`
	DryRun  bool `json:"dry_run,omitempty"`
}

// RepositoryRequest names a repository.
type RepositoryRequest struct {
	Name string `json:"name"`
}

// RepositoryListAnswer has all repositories, by name.
type RepositoryListAnswer struct {
	Repositories []Repository `json:"repositories"`
}

// Repository is a place for backups.
type Repository struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	Kind      string `json:"kind"` // directory or s3
	Path      string `json:"path,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`
	Region    string `json:"region,omitempty"`
	Bucket    string `json:"bucket,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	AccessKey string `json:"access_key,omitempty"`
	Default   bool   `json:"default"`
	Copies    bool   `json:"copies"`
	Encrypted bool   `json:"encrypted"`
	// Exported is when its key was exported last.
	Exported time.Time `json:"exported,omitzero"`
	Created  time.Time `json:"created"`

	// Databases has the databases that are backed up there, or restored from there: their names, or
	// the resource ids of those that are no more.
	Databases []string `json:"databases"`
	Backups   int      `json:"backups"`
	Snapshots int      `json:"snapshots"`
	// Copied are snapshots that were copied there from another repository, by name. Seconds are the
	// databases whose automated backups are made there, too, beside the repository that they use.
	Copied  []RepositoryCopy `json:"copied,omitempty"`
	Seconds []string         `json:"seconds,omitempty"`
	// Stored is how many bytes the backups take, without WAL.
	Stored int64 `json:"stored"`
	// Size and Free are those of a directory's file system. They are 0 if nobody knows, and in lists.
	Size int64 `json:"size,omitempty"`
	Free int64 `json:"free,omitempty"`
	// Trouble says why the control plane cannot work with it. It is "" in lists.
	Trouble string `json:"trouble,omitempty"`
}

// RepositoryCopy is a snapshot that was copied to a repository, or is being copied.
type RepositoryCopy struct {
	Snapshot string    `json:"snapshot"`
	Database string    `json:"database"` // its name when the data were backed up
	Account  string    `json:"account"`
	Region   string    `json:"region"`
	State    string    `json:"state"`
	Taken    time.Time `json:"taken,omitzero"` // the moment of its data
	Stored   int64     `json:"stored"`
}

// RepositoryCheckAnswer says for each who works with a repository whether everything works.
type RepositoryCheckAnswer struct {
	Name  string            `json:"name"`
	Looks []RepositoryCheck `json:"looks"` // of the control plane, and of each host
}

// RepositoryCheck is how a repository looks to somebody.
type RepositoryCheck struct {
	From string `json:"from"` // "control plane", or the name of a host
	// Trouble says what does not work, and Hint what to do. They are "" if all does.
	Trouble string `json:"trouble,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Skipped says that the host is lost, and was not asked.
	Skipped bool `json:"skipped,omitempty"`
}

// RepositoryRemoveRequest removes a repository from the home. With DeleteFiles it also deletes
// everything in it. With DryRun it only says whether that would work.
type RepositoryRemoveRequest struct {
	Name        string `json:"name"`
	DeleteFiles bool   `json:"delete_files,omitempty"`
	DryRun      bool   `json:"dry_run,omitempty"`
}

// RepositoryRemoveAnswer says what was removed.
type RepositoryRemoveAnswer struct {
	Repository Repository `json:"repository"`
	Objects    int        `json:"objects"` // deleted
}

// RepositoryKeyRequest gives a repository its key, as it was exported.
type RepositoryKeyRequest struct {
	Name      string `json:"name"`
	KeySecret string `json:"key_secret"`
}

// RepositoryKeyAnswer has a key, as text that can be kept.
type RepositoryKeyAnswer struct {
	Name string `json:"name"`
	Text string `json:"text"`
}
