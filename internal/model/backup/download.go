package backup

import (
	"time"

	"howdah/internal/model/operation"
)

// Download makes the data of a snapshot ready on a host, and keeps them there until somebody has
// fetched them, or nobody did for a while.
var Download = operation.Kind{Name: "download-snapshot", Within: 24 * time.Hour}

// What Download notes of the host that has the data, and of its job there.
const (
	NoteHost = "host"
	NoteJob  = "job"
)

// StepServe is the step of Download in which the data can be fetched.
const StepServe = "serve"

// JobDownload makes the data of a backup ready, and lets control planes fetch them. Its arguments are
// a DownloadJob. It tells Ready as soon as they can be fetched, and ends when they were.
const JobDownload = "download"

// DownloadForm is the form in which data are fetched.
type DownloadForm string

// The forms.
const (
	// DataDirectory is a data directory as a plain PostgreSQL has it.
	DataDirectory DownloadForm = "directory"
	// Dump is what pg_dump and pg_dumpall write.
	Dump DownloadForm = "dump"
)

// DownloadArgs are the arguments of Download.
type DownloadArgs struct {
	Snapshot   string `json:"snapshot"` // its name
	Repository string `json:"repository"`
	Label      string `json:"label"`
	// Encrypted says that the database's storage was encrypted: nothing may be readable on a disk of a
	// host.
	Encrypted bool `json:"encrypted,omitempty"`
	Downloading
}

// Downloading is what is asked for.
type Downloading struct {
	Form DownloadForm `json:"form"`
	// Only is the one database that a Dump is to have; "": all of them.
	Only string `json:"only,omitempty"`
	// Verifiers says that the SCRAM verifiers of users' passwords come along.
	Verifiers bool `json:"verifiers,omitempty"`
}

// DownloadJob asks any host for a download. Newest of the DrillJob is not used.
type DownloadJob struct {
	DrillJob
	Downloading
}

// Ready tells what can be fetched.
type Ready struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// DownloadRoom is how many times the size of the database has to be free on the host's disk.
func (d Downloading) DownloadRoom() int64 {
	if d.Form == Dump {
		return 3
	}
	return 2
}

// DownloadNote is the first file of what is fetched: what whoever puts the files in their place has to
// know of them.
type DownloadNote struct {
	Form  DownloadForm `json:"form"`
	Major int          `json:"major"`
	// Superuser is the platform's own role. Logins are the roles that can log in.
	Superuser string   `json:"superuser"`
	Logins    []string `json:"logins"`
	// Databases are those of users. Dirs has the directory of each in a Dump.
	Databases []string          `json:"databases"`
	Dirs      map[string]string `json:"dirs,omitempty"`
	Verifiers bool              `json:"verifiers"`
	// Prepared is how many transactions are prepared, and Tablespaces that users have some.
	Prepared    int  `json:"prepared,omitempty"`
	Tablespaces bool `json:"tablespaces,omitempty"`
	Ready
}

// Names of what is fetched: the note, and the directory that has all else.
const (
	DownloadNoteName = "howdah.json"
	DownloadDataName = "data"
	GlobalsName      = "globals.sql"
)
