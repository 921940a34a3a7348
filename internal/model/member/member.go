// Package member is the contract between the control plane and the agents. The control plane tells
// a host about each database member that it runs (Assignment, Task), and the host's agent answers
// what it sees and did (Report, Result). The package does no I/O.
package member

import (
	"strconv"
	"strings"
	"time"

	"howdah/internal/model/extension"
	"howdah/internal/model/lsn"
	"howdah/internal/model/patroni"
)

// ID names a member of a database everywhere: "<scope>.<name>".
func ID(database, name string) string { return database + "." + name }

// Number returns the N of a member's name mN, and 0 for any other name.
func Number(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
	if err != nil || name != "m"+strconv.Itoa(n) {
		return 0
	}
	return n
}

// Want is the state a member should be in.
type Want string

// The wanted states. Absent deletes the member's data. The control plane wants it only after an
// explicit request, or when a newer copy has replaced this one.
const (
	Running Want = "running"
	Stopped Want = "stopped"
	Absent  Want = "absent"
)

// Assignment tells a host everything about one member, so that the agent has nothing to choose.
// Only reconcile writes it.
type Assignment struct {
	ID         string `json:"id"`         // Scope.Name
	Generation int64  `json:"generation"` // grows with every change; an agent refuses an older one
	Want       Want   `json:"want"`

	Scope string `json:"scope"`
	Name  string `json:"name"`
	// OwnName says that Patroni knows the member by a name that no other database has.
	OwnName  bool   `json:"own_name,omitempty"`
	Address  string `json:"address"`
	Port     int    `json:"port"`
	RESTPort int    `json:"rest_port"`
	Major    int    `json:"major"`

	Tier       int  `json:"tier"`
	Boost      bool `json:"boost,omitempty"`
	NoFailover bool `json:"no_failover,omitempty"`
	NoSync     bool `json:"no_sync,omitempty"`
	RequireTLS bool `json:"require_tls"`
	// Allow lists the networks that users may connect from, in CIDR notation. The server sees the
	// addresses of edges in place of those of their clients, so these are listed too. nil admits
	// everyone, an empty list nobody. The platform's own connections always pass.
	Allow []string `json:"allow,omitzero"`
	// IAMAuth says that users with the role rds_iam log in with tokens, and with nothing else.
	IAMAuth bool `json:"iam_auth,omitempty"`

	Parameters map[string]string `json:"parameters"`
	Cluster    patroni.Cluster   `json:"cluster"`
	Limits     Limits            `json:"limits"`
	// ServerIPs are the addresses that the server's certificate must name.
	ServerIPs []string `json:"server_ips"`
	// ServerNames are the DNS names that it must have, and no others.
	ServerNames []string `json:"server_names,omitempty"`
	// Authority signs the server's certificate, and ServerKey is the kind of its key. "" stands for
	// the home's own authority, and for the kind of key that this one has.
	Authority string `json:"authority,omitempty"`
	ServerKey string `json:"server_key,omitempty"`
	Owner     Owner  `json:"owner"`
	// Keys is nil where members have no keys of their own: some part of the home is still of an
	// older release.
	Keys *Keys `json:"keys,omitempty"`
	// Encrypted says that nothing of the member may be readable on a disk.
	Encrypted bool `json:"encrypted,omitempty"`
	// Archive says where the database's WAL goes; nil: nowhere.
	Archive *Archive `json:"archive,omitempty"`
	// Restore says what the first data of the database are made of; nil: it begins empty, or has
	// data already.
	Restore *Restore `json:"restore,omitempty"`
	// Inherits says that the database was restored: the member never begins an empty one. It
	// restores the data if Restore says of what, or else copies those of another member.
	Inherits bool `json:"inherits,omitempty"`
	// Copy is a backup of the database that a standby without data may begin with; nil: it copies
	// the files of its primary.
	Copy *Copy `json:"copy,omitempty"`
	// Topology says who belongs to the cluster that the member is of; nil: it is of none.
	Topology *Topology `json:"topology,omitempty"`
	// Seal proves that the home wrote this assignment for this host (package seal). It does not
	// change how the member runs. "" comes from a control plane of an older release.
	Seal string `json:"seal,omitempty"`
}

// Archive says where the WAL and the backups of a database go.
type Archive struct {
	// Repositories has the names of repositories. WAL goes to each of them.
	Repositories []string `json:"repositories"`
	// Cap is how many bytes of WAL may wait to be archived. What is more is given up, so that the
	// disk does not fill.
	Cap int64 `json:"cap"`
}

// Restore says which data a new database begins with.
type Restore struct {
	// Live says that they are a copy of those of another database, made of a member of it that runs
	// on the same host.
	Live       bool   `json:"live,omitempty"`
	Database   string `json:"database"` // resource id of the one that was backed up, or is cloned
	Repository string `json:"repository"`
	Label      string `json:"label"`
	// As in spec.Origin.
	Until  time.Time `json:"until,omitzero"`
	LSN    string    `json:"lsn,omitempty"`
	Before string    `json:"before,omitempty"`
	Newest bool      `json:"newest,omitempty"`
}

// Copy is a backup of a database.
type Copy struct {
	Repository string `json:"repository"`
	Label      string `json:"label"`
}

// Unsealed returns the assignment without its seal.
func (a Assignment) Unsealed() Assignment {
	a.Seal = ""
	return a
}

// Keys says which keys a member shows to other members, and which it accepts from them.
type Keys struct {
	// Authority is the fingerprint of the authority that signs members' keys.
	Authority string `json:"authority"`
	// Admits lists the databases whose members may copy this one: its own, and those that follow
	// it.
	Admits []string `json:"admits"`
	// Own says that the member shows a key of its own in place of its host's.
	Own bool `json:"own,omitempty"`
	// Only says that nobody may copy the member with a host's key any more.
	Only bool `json:"only,omitempty"`
}

// OwnKey reports whether the member is to show a key of its own.
func (a Assignment) OwnKey() bool { return a.Keys != nil && a.Keys.Own }

// PatroniName is what Patroni calls the member.
func (a Assignment) PatroniName() string {
	if a.OwnName {
		return patroni.OwnName(a.Scope, a.Name)
	}
	return a.Name
}

// Limits are those of an instance class. Zero means no limit.
type Limits struct {
	CPUs         float64 `json:"cpus"`
	MemoryBytes  int64   `json:"memory_bytes"`
	IOPS         int64   `json:"iops"`
	StorageBytes int64   `json:"storage_bytes"`
}

// Owner is the database's master user, which the agent of the primary creates.
type Owner struct {
	Name string `json:"name"`
	// Verifier is the SCRAM-SHA-256 verifier of the password, never the password.
	Verifier string `json:"verifier"`
	// Serial grows when the verifier changes. The agent sets each serial once, so that a password
	// that users changed in SQL afterwards stays.
	Serial   int64  `json:"serial"`
	Database string `json:"database"` // to create for the master user, or ""
}

// Problem is a code that `howdah status` explains.
type Problem string

// Problems that an agent sees.
const (
	None           Problem = ""
	BadAssignment  Problem = "bad-assignment"  // refused: not usable as it is
	NoVersion      Problem = "no-version"      // PostgreSQL of this major version is missing
	PortTaken      Problem = "port-taken"      // someone else listens on the member's port
	DiskFull       Problem = "disk-full"       // the host's disk is nearly full, or PostgreSQL cannot write
	StorageFull    Problem = "storage-full"    // the allocated storage is used up
	StorageLow     Problem = "storage-low"     // less than a tenth of it is left
	SlotLost       Problem = "slot-lost"       // a replica fell behind the WAL kept for it
	CommitsWait    Problem = "commits-wait"    // commits wait long for standbys
	StartFails     Problem = "start-fails"     // processes end again and again
	NotReplicating Problem = "not-replicating" // a replica without a stream
	NoModule       Problem = "no-module"       // PostgreSQL runs without our module
	NoRoom         Problem = "no-room"         // for a copy beside data that are kept until it is there
	CannotContain  Problem = "cannot-contain"  // processes could not be killed
	Hangs          Problem = "hangs"           // PostgreSQL does not answer, or its disk does not
	NoKey          Problem = "no-key"          // the key of the encrypted storage cannot be had
	NotEncryptable Problem = "not-encrypted"   // storage that shall be encrypted is not, and cannot be
	RestoreFails   Problem = "restore-fails"   // its first data cannot be made of the backup
	SourceAway     Problem = "source-away"     // the database that it is a clone of does not answer on its host
	ArchiveFails   Problem = "archive-fails"   // WAL cannot be archived
	ArchiveBroken  Problem = "archive-broken"  // WAL was given up before it was archived
)

// Encryption says how storage is encrypted.
type Encryption string

// The ways to encrypt. With ByKey, each member's directory has a key of its own. With ByDisk, the
// disks of the host are encrypted as a whole.
const (
	NotEncrypted Encryption = ""
	ByKey        Encryption = "fscrypt"
	ByDisk       Encryption = "dm-crypt"
)

// Report is what an agent sees of one member. Only that agent writes it.
type Report struct {
	ID   string `json:"id"`
	Host string `json:"host"`
	// Agent names the process of the agent that made the report, as its heartbeats do. What an
	// earlier process saw may no longer be true. "" comes from an agent of an older release.
	Agent      string `json:"agent,omitempty"`
	Generation int64  `json:"generation"` // newest assignment that was acted on, with success or not
	// Rendered is the generation of the newest assignment that the configuration and the
	// certificate on disk follow, and that a running server was told to load. 0 means that it is
	// not known, or that the agent is of an older release.
	Rendered int64 `json:"rendered,omitempty"`

	Patroni  bool `json:"patroni"`  // its process lives
	Postgres bool `json:"postgres"` // its process lives
	// OwnKey says that the member's Patroni runs with a key of the member's own.
	OwnKey bool `json:"own_key,omitempty"`
	// Gone says that neither a process nor data of the member are left on the host.
	Gone bool `json:"gone,omitempty"`
	// Ready says that a client logged in with TLS a moment ago and ran SELECT 1.
	Ready      bool `json:"ready"`
	InRecovery bool `json:"in_recovery"`
	// Follows says that nobody can log in, but that the member's PostgreSQL answers on its private
	// socket that it is a standby.
	Follows  bool `json:"follows,omitempty"`
	Timeline int  `json:"timeline,omitempty"`
	// LSN is the end of the WAL that a primary wrote, or that a replica received.
	LSN        lsn.LSN `json:"lsn,omitempty"`
	Streaming  bool    `json:"streaming,omitempty"` // a replica that receives from its upstream
	LagSeconds float64 `json:"lag_seconds,omitempty"`
	// Paused says that a replica receives WAL and has stopped replaying it.
	Paused bool `json:"paused,omitempty"`

	// Slots has the names of users' logical replication slots on a primary, separated by spaces.
	Slots string `json:"slots,omitempty"`

	OwnerSerial int64 `json:"owner_serial,omitempty"` // of the owner that exists in the database

	// DisabledSubscriptions is how many subscriptions came to a primary with the data of another
	// database, whose replica it was, and were disabled.
	DisabledSubscriptions int `json:"disabled_subscriptions,omitempty"`

	// Authority signed the certificate that the server showed at the newest login. CertUntil is
	// when that certificate ends.
	Authority string    `json:"authority,omitempty"`
	CertUntil time.Time `json:"cert_until,omitzero"`

	// Encryption is how the member's directory is encrypted, as its host sees it.
	Encryption Encryption `json:"encryption,omitempty"`

	// Archived is what a primary says of the archive of the database's WAL.
	Archived *Archived `json:"archived,omitempty"`
	// Unarchived says of a primary that was stopped why WAL that it wrote may lack in the archive. ""
	// says that all is there, that it was a standby, or that nothing is archived.
	Unarchived string `json:"unarchived,omitempty"`
	// Cache is what a standby says of keeping its cache like its primary's; nil: it does not do that.
	Cache *Cache `json:"cache,omitempty"`
	// Restoring is how far the making of the first data of a restored database is; nil: it is not
	// going on.
	Restoring *Restoring `json:"restoring,omitempty"`

	StorageBytes int64     `json:"storage_bytes,omitempty"`
	Problem      Problem   `json:"problem,omitempty"`
	Detail       string    `json:"detail,omitempty"`
	At           time.Time `json:"at"`
}

// CacheOutside is the state of a standby whose agent reads for it, as its PostgreSQL, or its
// primary's, runs without the library of cluster cache management.
const CacheOutside = "from outside"

// Cache says how a standby keeps its cache like its primary's.
type Cache struct {
	// State is the cache manager's own word, or CacheOutside. Why says what holds it up, or is "".
	State string `json:"state"`
	Why   string `json:"why,omitempty"`
	// Percent says how much of what is hot in the primary's cache the standby had, if Known says that
	// it found that out lately.
	Percent float64 `json:"percent"`
	Known   bool    `json:"known,omitempty"`
	// Never says that its cache cannot become like its primary's: Why has to be mended first.
	Never bool `json:"never,omitempty"`
}

// Restoring is how far a restore is.
type Restoring struct {
	// Phase is files while files are copied, and wal while WAL is replayed.
	Phase string `json:"phase"`
	// Done and Of are bytes. Of is 0 if nobody knows.
	Done int64 `json:"done"`
	Of   int64 `json:"of"`
	// At is the time of the last commit that was replayed.
	At    time.Time `json:"at,omitzero"`
	Began time.Time `json:"began"`
}

// TaskKind names something that an agent does once.
type TaskKind string

// The tasks.
const (
	// Restart restarts PostgreSQL through Patroni.
	Restart TaskKind = "restart"
	// Handover gives the primary role away in an orderly way (docs/design/availability.md).
	Handover TaskKind = "handover"
	// Revive ends the member's Patroni and PostgreSQL at once, so that Patroni starts anew. The
	// agent refuses it where there is a primary, and where this PostgreSQL may be one.
	Revive TaskKind = "revive"
	// Reinit deletes a replica's data and copies them again.
	Reinit TaskKind = "reinit"
)

// Task asks a host's agent to do something once. The agent does it at most once for each ID, even
// if it dies in the middle. Only reconcile writes it.
type Task struct {
	ID     string   `json:"id"`
	Kind   TaskKind `json:"kind"`
	Host   string   `json:"host"`
	Member string   `json:"member"` // Assignment.ID
	// Force makes a handover go on where a checkpoint or an orderly stop fails. It is set for a
	// handover that somebody asked for. Any other handover is called off, and tried again.
	Force bool `json:"force,omitempty"`
	// Within is how long the task may take from its beginning, so that clocks need not agree. 0
	// comes from a control plane of an older release, and means until Deadline.
	Within time.Duration `json:"within,omitempty"`
	// Deadline is when the control plane gives the task up, by the control plane's own clock.
	Deadline time.Time `json:"deadline"`
}

// Limit returns how long a task that begins now may take. now is by the clock of the host that does
// it. 0 means that the agent must refuse the task, as it was forgotten. The clocks of the two hosts
// may differ by up to Within before a fresh task counts as forgotten.
func (t Task) Limit(now time.Time) time.Duration {
	left := t.Deadline.Sub(now)
	switch {
	case t.Within == 0:
		return max(left, 0)
	case left < -t.Within:
		return 0
	default:
		return t.Within
	}
}

// Result is the outcome of a task. The agent that did the task writes it.
type Result struct {
	ID     string    `json:"id"`
	Member string    `json:"member"`
	Done   bool      `json:"done"`
	Failed bool      `json:"failed"` // it did not happen, and nothing is half done
	Detail string    `json:"detail,omitempty"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
}

// minFree is how many bytes must be free on a disk of any size: four files of WAL.
const minFree = 64 << 20

// NearlyFull reports whether a disk is too full to write to. size is its size in bytes, and free is
// what is left: too little is less than 64 MiB, or than a hundredth of the size if that is more. It
// is false for a size of 0.
func NearlyFull(size, free int64) bool { return size > 0 && free < max(minFree, size/100) }

// An agent listens on the address of its host, on a port from the first to the last of these.
const (
	FirstAgentPort = 7444
	LastAgentPort  = 7483
)

// Host is what an agent says of its machine. Only that agent writes it.
type Host struct {
	Name     string `json:"name"`
	Zone     string `json:"zone"`
	Address  string `json:"address"`
	CPUs     int    `json:"cpus"`
	Memory   int64  `json:"memory"`    // bytes
	Disk     int64  `json:"disk"`      // bytes, of the filesystem with the data
	DiskFree int64  `json:"disk_free"` // of it what is free for databases
	// Majors maps each installed major version of PostgreSQL to its full version text.
	Majors map[int]string `json:"majors"`
	// Extensions maps each of them to what is installed for it of the extensions that users may create, and of libraries that
	// may be preloaded. It is nil if the agent is of an older release, which does not say.
	Extensions map[int]extension.Installed `json:"extensions,omitempty"`
	// Containment, Limits and Cut say in words how members are held, limited and cut off on this
	// host, for `howdah status`.
	Containment string   `json:"containment"`
	Limits      string   `json:"limits"`
	Cut         string   `json:"cut"` // "kernel", "receiver"
	Warnings    []string `json:"warnings,omitempty"`
	// Shared says why databases on this host do not run as separate operating-system users. It is
	// "" where they do.
	Shared  string    `json:"shared,omitempty"`
	Started time.Time `json:"started"`
	Version string    `json:"version"`
	// OwnNames says that the agent can give members names that no other database has.
	OwnNames bool `json:"own_names,omitempty"`
	// OwnKeys says that the agent can give members keys of their own.
	OwnKeys bool `json:"own_keys,omitempty"`
	// Reads is the newest format of records that its agent reads (package format).
	Reads int `json:"reads,omitempty"`
	// Encrypts is how this host can encrypt storage. WhyPlain says why it cannot.
	Encrypts Encryption `json:"encrypts,omitempty"`
	WhyPlain string     `json:"why_plain,omitempty"`
	// LimitsStorage says that the file system limits the directory of each new database. WhyWatched
	// says why it does not; the agent then only watches how much databases use.
	LimitsStorage bool   `json:"limits_storage,omitempty"`
	WhyWatched    string `json:"why_watched,omitempty"`
	// Shares says that files of databases here can share their blocks, so that a copy takes no room.
	Shares bool `json:"shares,omitempty"`
	// Listen is where the agent answers control planes, as host:port. It is "" if the agent does
	// not.
	Listen string `json:"listen,omitempty"`
}
