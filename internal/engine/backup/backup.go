// Package backup is the contract between Howdah and a program that backs databases up: an engine.
// Package pgbackrest has the one that is used. Package conformance says by tests what each must do.
//
// An engine starts nothing, and touches no file, but to find its programs. It renders the files
// that a member's backups need, makes the commands that the caller starts as the member's own user,
// and reads what they print. Secrets stand only in rendered files that nobody but the member's user
// reads, never in arguments.
//
// Three things hold with every engine. A backup is listed only when it is whole. Nothing is removed
// from a repository but by Expire. A recovery that cannot reach its target ends with an error: it
// never ends before the target in silence.
package backup

import (
	"io/fs"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/lsn"
)

// Place is a member's data directory, and what its backups need to know of it.
type Place struct {
	// Database is the resource id of the database. In each repository the files of one database
	// lie apart from those of others.
	Database string
	// Dir is a directory of the member's user for rendered files, locks and logs. The caller makes
	// it, with mode 0700. DataDir has PostgreSQL's data.
	Dir     string
	DataDir string
	// SocketDir and Port are where the server listens. User is the superuser that backs up; ""
	// stands for postgres. DBName is a database to connect to; "" stands for postgres.
	SocketDir string
	Port      int
	User      string
	DBName    string
	Major     int
	BinDir    string // of this version of PostgreSQL
	// Repositories get the database's WAL, each of them all of it. A backup goes to one of them.
	// Their order matters for nothing.
	Repositories []Access
	// Processes is how many processes a backup or a restore works with; 0 stands for
	// DefaultProcesses.
	Processes int
	// Cap is how many bytes of WAL may wait to be archived. If more wait, the archive command gives
	// the oldest file up, and adds its name to the file Broken in Dir. 0 gives nothing up.
	Cap int64
}

// DefaultProcesses is how many processes a backup works with, if the place does not say.
const DefaultProcesses = 2

// Failing is the name of the file in Place.Dir with what was printed when a file of WAL could not
// be archived or fetched last. It is gone once that works again. It is for Engine.Failed.
const Failing = "failing"

// Patience is the name of the file in Place.Dir with the moment, in seconds since 1970, until which the
// end of the server may wait for its archive. Without it that waits for two seconds, as a failover may
// wait for that end. A moment that is more than a minute away does not count.
const Patience = "patience"

// Broken is the name of the file in Place.Dir that lists the files of WAL which were given up, the
// oldest first, one a line. The agent takes out of it what does no harm any more, by a rename of a
// new file to this name.
const Broken = "broken"

// Foreign is the name of the directory in Place.Dir that has an empty file for each file of WAL of
// which a repository has another one by the same name: two servers archived to it. The agent removes
// what does no harm any more.
const Foreign = "foreign"

// Access opens one repository to a member. It is either an S3 server (Endpoint is set) or a
// directory (Path alone).
type Access struct {
	Name string // of the repository
	// Endpoint is https://HOST:PORT of an S3 server, and CAFile has the certificates, as PEM, that
	// sign the server's own. Bucket is addressed by path, as HOST:PORT/BUCKET.
	Endpoint string
	Bucket   string
	CAFile   string
	Key      string
	Secret   string
	// Path is the database's part, as "/<database>" in the bucket, or a directory.
	Path string
	// Passphrase encrypts what is written; "" leaves it in the clear.
	Passphrase string
}

// File is a rendered file. Path is absolute and lies in Place.Dir, or in another Dir that was given.
type File struct {
	Path string
	Data []byte
	Mode fs.FileMode
}

// Command is a program to start as the member's user, with nothing in its environment but Env and
// PATH. Its two streams of output go to Progress line by line, and to Failed when it fails.
type Command struct {
	Path string
	Args []string
	Env  []string
}

// Prepared is a command with what it needs. Files are written before it starts. Leaves is what the
// command leaves if it is killed.
type Prepared struct {
	Files   []File
	Command Command
	Leaves  []Link
}

// Link is a link that is removed by whoever can lock the file Lock for itself alone: then nobody else
// needs it.
type Link struct {
	Path, Lock string
}

// Server is how a primary lets a backup of one of its standbys read what a standby has not.
type Server struct {
	// Dir is a directory of the member's user for what is rendered.
	Dir     string
	Address string // of this host
	Port    int
	// CertFile and KeyFile are what the server shows. CAFile has the certificates, as PEM, that sign
	// those of clients. Client is the common name of the only one that is let in.
	CertFile, KeyFile, CAFile string
	Client                    string
}

// Primary is such a server, as a standby on another host reaches it.
type Primary struct {
	Address string
	Port    int
	// ServerDir is the server's Dir. DataDir, SocketDir and PostgresPort are of the primary's Place.
	ServerDir, DataDir, SocketDir string
	PostgresPort                  int
	// Dir is a directory of the standby's user for what is rendered. CertFile and KeyFile are what
	// the standby shows. CAFile has the certificate, as PEM, that signs the server's.
	Dir                       string
	CertFile, KeyFile, CAFile string
}

// Take says which backup to make.
type Take struct {
	Repository string
	// Kind is what is asked for. An incremental backup stands on the newest one in the repository,
	// and becomes a full one if there is none.
	Kind backup.Kind
	// Operation is noted with the backup, so that it can be found again.
	Operation string
}

// Target is where recovery ends. The zero value is the end of the backup: the earliest moment that
// can be restored from it. At most one field is set.
type Target struct {
	Until  time.Time // everything committed by then, and nothing later
	LSN    lsn.LSN   // everything up to and with this position
	Before string    // transaction id: everything that committed before it
	Newest bool      // all that the archive has
}

// Restore says what to restore.
type Restore struct {
	Repository string
	Label      string
	// Timeline is the one to follow; 0 stands for the newest of the repository at which Target can
	// lie. A target on a branch that was abandoned needs it.
	Timeline int
	Target   Target
}

// Recovery is what a server needs to replay WAL after its files were restored. Signal is the name
// of an empty file in the data directory. Settings are for this start alone: they are not to stand
// in the server's configuration later. The server ends recovery by itself, and takes writes then.
type Recovery struct {
	Signal   string
	Settings map[string]string
}

// Expire says what to remove from a repository.
type Expire struct {
	Repository string
	// Labels are backups that go. What needs one of them goes, too. The newest full backup of a
	// database cannot go: remove all that the database has in the repository in its place.
	Labels []string
	// Archive is how many backups, counted from the newest, keep all WAL that follows them. Of
	// older ones only the WAL stays that makes them consistent. 0 keeps all WAL.
	Archive int
}

// Listing is what a repository has of a database.
type Listing struct {
	// Backups are those that are whole, the oldest first.
	Backups []Info
	// FirstWAL and LastWAL are the oldest and the newest file of WAL, by name; "": there is none.
	FirstWAL, LastWAL string
}

// Info is what a repository says of a backup.
type Info struct {
	Label string
	Kind  backup.Kind
	// Needs lists the labels of the backups without which this one is of no use.
	Needs     []string
	Operation string // as in Take; "" if it has none
	Major     int
	SystemID  string
	Start     time.Time
	// Stop is not before the backup ended: from then on each moment can be restored from it.
	Stop     time.Time
	StartLSN lsn.LSN
	StopLSN  lsn.LSN
	// Timeline is the one on which the backup ended.
	Timeline int
	// Size is that of the database, Stored what the backup added to the repository, in bytes.
	Size   int64
	Stored int64
	// Damaged says that pages with wrong checksums were found while the backup was made.
	Damaged bool
}

// Progress is how far a command is: Done parts of Of. Parts may be of any size, but are alike.
type Progress struct {
	Done, Of int64
}

// Failure says why a command failed, in one plain line that ends with what to do, if there is
// something to do. Final says that another try would fail, too.
type Failure struct {
	Reason string
	Final  bool
	// Suspect says that a file of a backup may be damaged or missing. It may also have been garbled on
	// its way: Verify looks at it once more. It is not Final.
	Suspect bool
	// Lost is the name of the file of WAL, or of the history, that recovery asked for and that the
	// repository does not have any more, or has damaged; "": it is none of these. It was looked at more
	// than once, so it is Final.
	Lost string
}

// Fault is a file of a repository that is missing, or is not what was written.
type Fault struct {
	// File is the engine's name for it, and Backup the label of the backup that it is a part of. One
	// of the two may be "": nobody knows more. WAL is the name of a file of WAL; then Backup is "".
	File, Backup, WAL string
	// What says what is wrong with it, as "is missing".
	What string
}

func (f Fault) String() string {
	if f.File == "" {
		return "a file " + f.What
	}
	return f.File + " " + f.What
}

// Engine is a program that backs up and restores. Its methods are pure.
type Engine interface {
	// Name says which program it is, with its version: "pgBackRest 2.55.1".
	Name() string
	// Files renders what all commands of a place need. They are written before anything else is
	// done, and again whenever their content changes.
	Files(p Place) []File
	// ArchiveCommand is the value of archive_command. archive_mode must be always: on a standby the
	// command only succeeds once a file is in each repository.
	ArchiveCommand(p Place) string

	// ArchivePrefix is what the keys of a database's WAL begin with, below the database's part of a
	// repository. WALOf returns the name that PostgreSQL gave to the file with such a key: of whole
	// files of WAL, and of timelines' histories. ok is false for what is neither.
	ArchivePrefix(p Place) string
	WALOf(key string) (name string, ok bool)

	// Create prepares each repository for the database. It needs a running primary, and is
	// idempotent. It fails if the repository has files of a server with another system identifier.
	Create(p Place) []Command
	// Renew tells each repository that the database has another system identifier or another major
	// version from now on. It needs a running primary after Create, and is idempotent.
	Renew(p Place) []Command
	// Check commands succeed if WAL of the running primary arrives in each repository.
	Check(p Place) []Command
	// Backup makes a backup of the running primary.
	Backup(p Place, t Take) Command
	// BackupStandby makes a backup by copying what the standby in the place has. The primary begins
	// and ends it, and gives what a standby has not. The command fails if the standby does not replay
	// what it needs or is promoted meanwhile, and if the engine of the primary's host is of another
	// release.
	BackupStandby(p Place, from Primary, t Take) Prepared
	// Serve lets a backup of a standby use the primary in the place, until the command is ended.
	Serve(p Place, s Server) Prepared
	// List prints what ParseList reads.
	List(p Place, repository string) Command
	ParseList(out []byte) (Listing, error)
	// Verify reads a backup, with all that it needs, and prints what Verified reads. "" stands for all
	// backups and all WAL that the repository has of the database. How it ends says nothing of what it
	// found. It may look at more than it was asked for.
	Verify(p Place, repository, label string) Command
	// Verified returns what is damaged, by what Verify printed and its exit code. An error says that the
	// repository could not be read: nobody knows then.
	Verified(out []byte, exit int) ([]Fault, error)
	// Expire returns commands that are to be run one after the other.
	Expire(p Place, e Expire) []Command

	// Restore copies files into the empty directory Place.DataDir. Nothing needs to run. In Place,
	// Database and Repositories are those of the database that was backed up.
	Restore(p Place, r Restore) Command
	// Recovery is what the first start after Restore needs. The caller starts the server with
	// archive_mode=off until recovery has ended.
	Recovery(p Place, r Restore) Recovery
	// CheckWAL fetches a file of WAL that recovery has fetched before, to another place. It fails with
	// Failure.Lost if its content is not what was archived, which recovery takes for the end of WAL.
	CheckWAL(p Place, r Restore, name, to string) Command

	// Progress reads a line that a command printed. ok is false if the line says nothing of it.
	Progress(line string) (p Progress, ok bool)
	// Failed says why a command failed which printed this, and ended with this exit code.
	Failed(out []byte, exit int) Failure
}
