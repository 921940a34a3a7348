package admin

import (
	"time"

	"howdah/internal/failover/postmortem"
	"howdah/internal/model/lsn"
)

// Status is the whole truth about a home at one moment.
type Status struct {
	Home       string    `json:"home"` // id
	Version    string    `json:"version"`
	Account    string    `json:"account"` // the caller's
	Region     string    `json:"region"`  // the caller's
	Disposable bool      `json:"disposable"`
	Zone       string    `json:"dns_zone,omitempty"` // in which databases have names
	Time       time.Time `json:"time"`

	Control   []Control    `json:"control"`
	Etcd      []EtcdMember `json:"etcd"`
	Edges     []Edge       `json:"edges"`
	Hosts     []Host       `json:"hosts"`
	Databases []Database   `json:"databases"` // of all accounts and regions
	Fences    []Fence      `json:"fences"`    // cases that are open

	LastFailover *postmortem.Record `json:"last_failover,omitempty"`
	Problems     []Problem          `json:"problems"`
}

// Control is a control plane.
type Control struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Running bool   `json:"running"`
	Leading bool   `json:"leading"`
}

// EtcdMember is a member of the state store.
type EtcdMember struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	URL     string `json:"url"` // for clients
	Healthy bool   `json:"healthy"`
	Leader  bool   `json:"leader"`
	Learner bool   `json:"learner"`
	Bytes   int64  `json:"bytes"` // of its database, in use
	// Size is the size of the database's file, and Quota the size at which nobody can write, both
	// in bytes.
	Size  int64 `json:"size,omitempty"`
	Quota int64 `json:"quota,omitempty"`
	// Scarce says that only what failovers need is left of the quota. Full says that nobody can
	// write.
	Scarce bool   `json:"scarce,omitempty"`
	Full   bool   `json:"full,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Edge leads clients to databases.
type Edge struct {
	Name                 string    `json:"name"`
	Running              bool      `json:"running"` // it said so within the last seconds
	Driver               string    `json:"driver"`
	ClientAddressVisible bool      `json:"client_address_visible"`
	Cost                 string    `json:"cost"`
	Names                string    `json:"names,omitempty"` // where it answers for names of databases, as ip:port
	Started              time.Time `json:"started"`
}

// States of a host.
const (
	HostAlive   = "alive"
	HostLost    = "lost"
	HostUnknown = "unknown" // not judged yet
)

// These say what holds the storage of databases within its limit.
const (
	StorageHeld    = "file-system"
	StorageWatched = "watched" // measured, and PostgreSQL alone is stopped
)

// Host is a place for members.
type Host struct {
	Name     string    `json:"name"`
	Zone     string    `json:"zone"`
	Address  string    `json:"address"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"` // of that state
	Draining bool      `json:"draining"`

	CPUs      int   `json:"cpus"`
	Memory    int64 `json:"memory"`    // bytes
	Committed int64 `json:"committed"` // bytes of memory that the classes of its members promise
	Disk      int64 `json:"disk"`      // bytes
	DiskFree  int64 `json:"disk_free"`

	Postgres    []string `json:"postgres"` // installed versions
	Containment string   `json:"containment"`
	Limits      string   `json:"limits"`
	Cut         string   `json:"cut"` // how a lost primary is cut off here
	Warnings    []string `json:"warnings,omitempty"`
	Shared      string   `json:"shared,omitempty"` // why databases here are not kept apart by users; "": they are
	// StorageLimit says what keeps a new database from taking more of the disk than it was given,
	// whoever writes there: StorageHeld or StorageWatched. What follows says why.
	StorageLimit string    `json:"storage_limit"`
	WhyWatched   string    `json:"why_watched,omitempty"`
	Members      []string  `json:"members"` // DATABASE/MEMBER
	Version      string    `json:"version"`
	Started      time.Time `json:"started"`
}

// Kinds of databases.
const (
	KindInstance = "instance"
	KindCluster  = "cluster"
)

// Database is a DB instance that is in no cluster, or a DB cluster.
type Database struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Account    string `json:"account"`
	Region     string `json:"region"`
	ResourceID string `json:"resource_id"`
	Status     string `json:"status"` // RDS's word

	Engine      string    `json:"engine"`
	Version     string    `json:"version"`
	Class       string    `json:"class,omitempty"`
	MultiAZ     bool      `json:"multi_az"`
	StorageGiB  int       `json:"storage_gib,omitempty"`
	StorageType string    `json:"storage_type,omitempty"`
	IOPS        int       `json:"iops,omitempty"`
	MasterUser  string    `json:"master_user"`
	DBName      string    `json:"db_name,omitempty"`
	Created     time.Time `json:"created"`
	Protected   bool      `json:"deletion_protection"`
	// Follows is the name of the database that this one replicates.
	Follows string `json:"follows,omitempty"`
	// Replaced has the resource ids of the databases in whose place it is, the newest last.
	Replaced []string `json:"replaced,omitempty"`
	// HostKeys says that whoever has the key of a host may copy its members, too: not all members
	// of it, and of what follows it, have keys of their own yet.
	HostKeys bool `json:"host_keys,omitempty"`
	// Waiting says that modifications wait for the maintenance window.
	Waiting bool `json:"waiting,omitempty"`

	// Cold says why cluster cache management is off although it is asked for.
	Cold string `json:"cold,omitempty"`
	// Abandoned says why the last requested failover did not take place. It is "" if it did.
	Abandoned string `json:"abandoned,omitempty"`

	// Backups is nil where nothing is promised, and there are no backups either.
	Backups *DatabaseBackups `json:"backups,omitempty"`

	SyncMode  string     `json:"sync_mode"` // off, on, quorum
	Endpoints []Endpoint `json:"endpoints"`
	Members   []Member   `json:"members"`
	Steps     []Step     `json:"steps"` // of what is going on, oldest first
}

// Kinds of endpoints.
const (
	EndpointWriter   = "writer" // also an instance's only one
	EndpointReader   = "reader"
	EndpointInstance = "instance"
	EndpointCustom   = "custom"
)

// Endpoint is an address that clients use.
type Endpoint struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`           // of the instance, cluster or custom endpoint
	Address string   `json:"address"`        // ip:port
	Host    string   `json:"host,omitempty"` // its DNS name
	LeadsTo []string `json:"leads_to"`
}

// Roles of members.
const (
	RolePrimary = "primary"
	RoleStandby = "standby"
	RoleReplica = "replica" // first of a database that follows another one
)

// Sync states of members that are not the primary.
const (
	SyncSync   = "sync"   // confirms every commit
	SyncQuorum = "quorum" // one of several of which any confirms
	SyncAsync  = "async"
)

// Member is one copy of a database.
type Member struct {
	Name     string `json:"name"`
	Instance string `json:"instance,omitempty"` // in a cluster
	Host     string `json:"host"`
	Zone     string `json:"zone"`
	Address  string `json:"address"` // ip:port of its PostgreSQL
	Role     string `json:"role"`
	Sync     string `json:"sync,omitempty"`
	// State is a word for people: ready, starting, down, stopped, host lost, …
	State    string `json:"state"`
	Ready    bool   `json:"ready"`
	Patroni  bool   `json:"patroni"`
	Postgres bool   `json:"postgres"`
	Timeline int    `json:"timeline"`

	LSN lsn.LSN `json:"lsn"` // written (primary) or received
	// LagBytes is how far it is behind the primary. It is absent if that is not known.
	LagBytes     *int64   `json:"lag_bytes,omitempty"`
	LagSeconds   *float64 `json:"lag_seconds,omitempty"`
	StorageBytes int64    `json:"storage_bytes"`

	// Cache says how a standby keeps its cache like its primary's. It is absent where it does not.
	Cache *Cache `json:"cache,omitempty"`
	// Restoring is how far its first data are made of a backup. It is absent when that does not go on.
	Restoring *Restoring `json:"restoring,omitempty"`
	// Going says why it is to be removed: replaced or surplus.
	Going   string `json:"going,omitempty"`
	Problem string `json:"problem,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Cache says how a standby keeps its cache like its primary's (cluster cache management).
type Cache struct {
	State   string  `json:"state"`         // the cache manager's own word
	Why     string  `json:"why,omitempty"` // what holds it up
	Percent float64 `json:"percent"`       // of what is hot in the primary's cache, if Known
	Known   bool    `json:"known"`
	// Outside says that its agent reads for it: PostgreSQL runs without the library.
	Outside bool `json:"outside,omitempty"`
}

// Restoring is how far a restore is.
type Restoring struct {
	Phase string    `json:"phase"` // files while they are copied, and wal while it is replayed
	Done  int64     `json:"done"`  // bytes
	Of    int64     `json:"of"`    // bytes; 0: not known
	Began time.Time `json:"began"`
}

// Fence is an open case of a primary that may be lost.
type Fence struct {
	Database string    `json:"database"` // name
	Phase    string    `json:"phase"`
	Host     string    `json:"host"`
	Member   string    `json:"member"`
	Opened   time.Time `json:"opened"`
	Evidence []string  `json:"evidence,omitempty"`
	Method   string    `json:"method,omitempty"` // of the proof
	Proof    string    `json:"proof,omitempty"`
}
