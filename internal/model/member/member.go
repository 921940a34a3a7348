// Package member is the contract between the control plane and the agents: what
// a host is told about each database member that it runs (Assignment, Task), and
// what its agent says of it (Report, Result). It does no I/O.
package member

import (
	"strconv"
	"strings"
	"time"

	"howdah/internal/model/lsn"
	"howdah/internal/model/patroni"
)

// ID names a member of a database everywhere: "<scope>.<name>".
func ID(database, name string) string { return database + "." + name }

// Number is the N of a member's name mN; 0: it is no such name.
func Number(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
	if err != nil || name != "m"+strconv.Itoa(n) {
		return 0
	}
	return n
}

// Want is the state a member should be in.
type Want string

// The wanted states. Absent deletes the member's data: the control plane says so
// only after an explicit request, or when a newer copy has replaced this one.
const (
	Running Want = "running"
	Stopped Want = "stopped"
	Absent  Want = "absent"
)

// Assignment tells a host everything about one member: it leaves the agent
// nothing to choose. Written by reconcile only.
type Assignment struct {
	ID         string `json:"id"`         // Scope.Name
	Generation int64  `json:"generation"` // grows with every change; an agent refuses an older one
	Want       Want   `json:"want"`

	Scope string `json:"scope"`
	Name  string `json:"name"`
	// OwnName: Patroni knows the member by a name that no other database has.
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
	// Allow are the networks that users may connect from, in CIDR notation: as the
	// server sees them, so with the addresses of edges that stand between. nil:
	// everyone; none: nobody. The platform's own connections pass all the same.
	Allow []string `json:"allow,omitzero"`
	// IAMAuth: users of the role rds_iam log in with tokens, and with nothing else.
	IAMAuth bool `json:"iam_auth,omitempty"`

	Parameters map[string]string `json:"parameters"`
	Cluster    patroni.Cluster   `json:"cluster"`
	Limits     Limits            `json:"limits"`
	// ServerIPs are the addresses that the server's certificate must name.
	ServerIPs []string `json:"server_ips"`
	// Authority signs it, and ServerKey is the kind of its key; "": the home's own, and
	// what that has.
	Authority string `json:"authority,omitempty"`
	ServerKey string `json:"server_key,omitempty"`
	Owner     Owner  `json:"owner"`
	// Keys is nil where members have no keys of their own: in a home that has parts of an
	// older release.
	Keys *Keys `json:"keys,omitempty"`
	// Encrypted: nothing of the member may be on a disk that can be read there.
	Encrypted bool `json:"encrypted,omitempty"`
	// Seal shows that the home wrote this for this host (package seal). It says nothing of how the
	// member is to run. "": a control plane of an older release wrote it.
	Seal string `json:"seal,omitempty"`
}

// Unsealed is the assignment without its seal: what it says of the member.
func (a Assignment) Unsealed() Assignment {
	a.Seal = ""
	return a
}

// Keys says with which keys a member and others know each other.
type Keys struct {
	// Authority is the fingerprint of the authority of members.
	Authority string `json:"authority"`
	// Admits are the databases whose members may copy this one: its own, and those that
	// follow it.
	Admits []string `json:"admits"`
	// Own: the member shows a key of its own, and not its host's.
	Own bool `json:"own,omitempty"`
	// Only: nobody may copy it with a host's key any more.
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
	// Serial grows when the verifier changes: it is set once for each serial, so
	// that a password that users changed in SQL stays theirs.
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
)

// Encryption says how storage is encrypted.
type Encryption string

// The ways. ByKey: each member's directory has a key of its own; ByDisk: the disks of the
// host are encrypted as a whole.
const (
	NotEncrypted Encryption = ""
	ByKey        Encryption = "fscrypt"
	ByDisk       Encryption = "dm-crypt"
)

// Report is what an agent sees of one member. Written by that agent only.
type Report struct {
	ID   string `json:"id"`
	Host string `json:"host"`
	// Agent names the process of the agent that saw it, as its heartbeats do: what one
	// before it saw need not hold any more. "": an agent of an older release.
	Agent      string `json:"agent,omitempty"`
	Generation int64  `json:"generation"` // newest assignment that was acted on, with success or not
	// Rendered is the newest assignment that configuration and certificate follow, which
	// a running server was told. 0: not known, or of an older agent.
	Rendered int64 `json:"rendered,omitempty"`

	Patroni  bool `json:"patroni"`  // its process lives
	Postgres bool `json:"postgres"` // its process lives
	// OwnKey: its Patroni runs with a key of the member's own.
	OwnKey bool `json:"own_key,omitempty"`
	// Gone: nothing of the member is left on the host, neither process nor data.
	Gone bool `json:"gone,omitempty"`
	// Ready: a client logged in with TLS and ran SELECT 1 a moment ago.
	Ready      bool `json:"ready"`
	InRecovery bool `json:"in_recovery"`
	// Follows: nobody can log in, and its PostgreSQL says on its private socket that it is a
	// standby.
	Follows  bool `json:"follows,omitempty"`
	Timeline int  `json:"timeline,omitempty"`
	// LSN is the end of what was written (primary) or received (replica).
	LSN        lsn.LSN `json:"lsn,omitempty"`
	Streaming  bool    `json:"streaming,omitempty"` // a replica that receives from its upstream
	LagSeconds float64 `json:"lag_seconds,omitempty"`
	// Paused: a replica that receives, and does not replay any more.
	Paused bool `json:"paused,omitempty"`

	OwnerSerial int64 `json:"owner_serial,omitempty"` // of the owner that exists in the database

	// Authority signed the certificate that the server showed at the newest login, and
	// CertUntil is that certificate's end.
	Authority string    `json:"authority,omitempty"`
	CertUntil time.Time `json:"cert_until,omitzero"`

	// Encryption is how the member's directory is encrypted, as its host sees it.
	Encryption Encryption `json:"encryption,omitempty"`

	StorageBytes int64     `json:"storage_bytes,omitempty"`
	Problem      Problem   `json:"problem,omitempty"`
	Detail       string    `json:"detail,omitempty"`
	At           time.Time `json:"at"`
}

// TaskKind names something that an agent does once.
type TaskKind string

// The tasks.
const (
	// Restart restarts PostgreSQL through Patroni.
	Restart TaskKind = "restart"
	// Handover gives the primary role away in an orderly way (docs/design/availability.md).
	Handover TaskKind = "handover"
	// Revive ends Patroni and PostgreSQL of a member at once, for Patroni to start anew.
	// It is refused where there is a primary, or this PostgreSQL may be one.
	Revive TaskKind = "revive"
	// Reinit throws a replica's data away and copies them again.
	Reinit TaskKind = "reinit"
)

// Task asks a host's agent for one deed. It is done at most once for each ID,
// also if the agent dies in the middle. Written by reconcile only.
type Task struct {
	ID     string   `json:"id"`
	Kind   TaskKind `json:"kind"`
	Host   string   `json:"host"`
	Member string   `json:"member"` // Assignment.ID
	// Force: a handover that somebody asked for as such goes on where a checkpoint or an
	// orderly stop fails. Other ones are called off, and tried again.
	Force bool `json:"force,omitempty"`
	// Within is how long it may take from its beginning, whenever that is by anyone's
	// clock; 0, of an older control plane: until Deadline.
	Within time.Duration `json:"within,omitempty"`
	// Deadline is when the control plane gives it up, by its own clock.
	Deadline time.Time `json:"deadline"`
}

// Limit is how long a task may take that begins now, by the clock of the host that
// does it; nothing when it is to be refused. Clocks may differ by as much as the task
// may take before a task that was asked for just now counts as forgotten.
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

// Result is the outcome of a task. Written by the agent that did it.
type Result struct {
	ID     string    `json:"id"`
	Member string    `json:"member"`
	Done   bool      `json:"done"`
	Failed bool      `json:"failed"` // it did not happen, and nothing is half done
	Detail string    `json:"detail,omitempty"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
}

// minFree is what a disk of any size must have free, in bytes: four files of WAL.
const minFree = 64 << 20

// NearlyFull reports whether a disk of size bytes with this many free ones is no
// place to write to any more: below 64 MiB or a hundredth of it, whichever is more.
func NearlyFull(size, free int64) bool { return size > 0 && free < max(minFree, size/100) }

// Agents listen on their host's address, on ports from the first to the last of these.
const (
	FirstAgentPort = 7444
	LastAgentPort  = 7483
)

// Host is what an agent says of its machine. Written by that agent only.
type Host struct {
	Name     string `json:"name"`
	Zone     string `json:"zone"`
	Address  string `json:"address"`
	CPUs     int    `json:"cpus"`
	Memory   int64  `json:"memory"`    // bytes
	Disk     int64  `json:"disk"`      // bytes, of the filesystem with the data
	DiskFree int64  `json:"disk_free"` // of it what is free for databases
	// Majors are the PostgreSQL versions that are installed, with their full text.
	Majors map[int]string `json:"majors"`
	// Containment, Limits and Cut say how members are held, limited and cut off
	// here: in words, for `howdah status`.
	Containment string   `json:"containment"`
	Limits      string   `json:"limits"`
	Cut         string   `json:"cut"` // "kernel", "receiver"
	Warnings    []string `json:"warnings,omitempty"`
	// Shared says why databases here are not kept apart by operating-system users; "": they are.
	Shared  string    `json:"shared,omitempty"`
	Started time.Time `json:"started"`
	Version string    `json:"version"`
	// OwnNames: its agent can give members names that no other database has.
	OwnNames bool `json:"own_names,omitempty"`
	// OwnKeys: its agent can give members keys of their own.
	OwnKeys bool `json:"own_keys,omitempty"`
	// Reads is the newest format of records that its agent reads (package format).
	Reads int `json:"reads,omitempty"`
	// Encrypts is how storage can be encrypted here; WhyPlain says why it cannot.
	Encrypts Encryption `json:"encrypts,omitempty"`
	WhyPlain string     `json:"why_plain,omitempty"`
	// LimitsStorage: the file system holds a limit for each new database's directory; WhyWatched says
	// why it does not, and what databases have is watched alone.
	LimitsStorage bool   `json:"limits_storage,omitempty"`
	WhyWatched    string `json:"why_watched,omitempty"`
	// Listen is where the agent answers control planes, as host:port; "" where it does
	// not.
	Listen string `json:"listen,omitempty"`
}
