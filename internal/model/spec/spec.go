// Package spec has the desired state as users asked for it through the API: DB instances, DB
// clusters and custom endpoints, their defaults, and the rules that a request must keep. It does no
// I/O and knows nothing of hosts.
package spec

import (
	"strings"
	"time"
)

// Engines that Howdah runs.
const (
	Postgres = "postgres"
	Aurora   = "aurora-postgresql"
)

// Scope is the account and region in which a name is unique.
type Scope struct {
	Account string `json:"account"`
	Region  string `json:"region"`
}

// ARN returns the resource name of a resource in this scope.
func (s Scope) ARN(kind, name string) string {
	return strings.Join([]string{"arn:aws:rds", s.Region, s.Account, kind, name}, ":")
}

// Tag is a user's label. Tags with the prefix "howdah:" are settings: see Setting.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Common is what instances and clusters have in common.
type Common struct {
	Scope
	Name string `json:"name"` // lower case
	// ResourceID never changes, even if the resource is renamed. Databases on hosts are named by
	// it.
	ResourceID string    `json:"resource_id"`
	Created    time.Time `json:"created"`
	// Generation grows with every change of the record.
	Generation int64 `json:"generation"`

	Engine  string `json:"engine"`
	Version string `json:"version"` // as asked for or resolved: "15.18"
	Major   int    `json:"major"`
	Port    int    `json:"port"`
	// Address is the address of the instance's endpoint, or of a cluster's writer endpoint.
	Address string `json:"address"`
	// Former lists earlier addresses of the endpoint that it still has. Clients are served at the
	// first of them until all certificates name the new address. The endpoint is being moved while
	// the list is not empty.
	Former []string `json:"former_addresses,omitempty"`

	MasterUser string `json:"master_user"`
	Verifier   string `json:"verifier"` // SCRAM-SHA-256; the password itself is never kept
	// PasswordSerial grows when the verifier changes.
	PasswordSerial int64  `json:"password_serial"`
	DBName         string `json:"db_name"`
	// Managed says that Howdah makes the master user's password, and changes it from time to time.
	Managed bool `json:"managed,omitempty"`

	ParameterGroup     string   `json:"parameter_group"`
	Taken              Taken    `json:"taken,omitzero"` // of ParameterGroup
	SubnetGroup        string   `json:"subnet_group"`
	SecurityGroups     []string `json:"security_groups"`
	BackupRetention    int      `json:"backup_retention"` // days
	BackupWindow       string   `json:"backup_window"`
	MaintenanceWindow  string   `json:"maintenance_window"`
	DeletionProtection bool     `json:"deletion_protection"`
	CopyTagsToSnapshot bool     `json:"copy_tags_to_snapshot"`
	IAMAuth            bool     `json:"iam_auth"`
	Encrypted          bool     `json:"encrypted"`         // of an earlier release: nothing follows from it
	KMSKey             string   `json:"kms_key,omitempty"` // as Encrypted
	// StorageKey is the id of the KMS key that opens the key of the storage. "" means that the
	// storage is not encrypted. Instances of a cluster have the cluster's key.
	StorageKey          string   `json:"storage_key,omitempty"`
	LogExports          []string `json:"log_exports,omitempty"` // of an earlier release: nothing follows from it
	MonitoringInterval  int      `json:"monitoring_interval"`
	MonitoringRole      string   `json:"monitoring_role,omitempty"`
	PerformanceInsights bool     `json:"performance_insights"` // as LogExports
	CACertificate       string   `json:"ca_certificate"`
	NetworkType         string   `json:"network_type"`
	Roles               []Role   `json:"roles,omitempty"`
	Tags                []Tag    `json:"tags"`

	// Stopped says that no process of the resource shall run. Its data stay.
	Stopped bool `json:"stopped"`
	// Deleting says that the resource is being deleted. It is never set back.
	Deleting bool `json:"deleting"`

	// Change counts the modifications that the planner has to carry out. Until the newest is done,
	// the status is ChangeStatus; then ChangeEvents are raised. For a member of a cluster, the
	// change is done when the seat's Restart reaches this number: see plan.ForCluster.
	Change       int64    `json:"change"`
	ChangeStatus string   `json:"change_status,omitempty"`
	ChangeEvents []string `json:"change_events,omitempty"` // ids of package event
	// Reboot and Failover count requests. The planner does each request once.
	Reboot         int64  `json:"reboot"`
	Failover       int64  `json:"failover"`
	FailoverTarget string `json:"failover_target,omitempty"` // resource id of an instance, or ""

	// Origin is where the data came from when the database was restored; nil: it began empty.
	Origin *Origin `json:"origin,omitempty"`
	// Final is the name of the snapshot that is made before the database is deleted. The database
	// counts as being deleted from then on, and Deleting is set when the snapshot is there.
	Final string `json:"final,omitempty"`
	// StopAfter is the name of the snapshot that is made before the instance is stopped. The
	// instance counts as stopping from then on, and Stopped is set when the snapshot is there.
	StopAfter string `json:"stop_after,omitempty"`
	// MadeBy is the id of the operation that has made the database for its own ends, or that has taken
	// the database out of use. Users do not see such a database, and no endpoint leads to it. "" says
	// that the database is a user's.
	MadeBy string `json:"made_by,omitempty"`
	// ClosedBy is the id of the operation that keeps all processes of the database from running for a
	// while; "": none does.
	ClosedBy string `json:"closed_by,omitempty"`
	// Replaced has the resource ids of the databases whose place it took, and whose name and endpoint it
	// has, the newest last.
	Replaced []string `json:"replaced,omitempty"`
	// Expects is an address that the endpoint is about to have; "": none. The certificates of servers
	// name it already.
	Expects string `json:"expects,omitempty"`

	// Before holds the values that the newest Change replaces. They are shown until it is done.
	Before *Values `json:"before,omitempty"`
	// OptIns lists the maintenance actions that users want in the next window. Offered is the
	// newest version that an event announced.
	OptIns  []OptIn `json:"opt_ins,omitempty"`
	Offered string  `json:"offered,omitempty"`
	// OfferedAuthority is the newest authority that an event announced.
	OfferedAuthority string `json:"offered_authority,omitempty"`
	// Pending holds the values that wait for the maintenance window.
	Pending *Values `json:"pending,omitempty"`
	// SharedMemory is the memory, in bytes, for the settings of which a standby must not have less
	// than its primary. It is set where that is more than the memory of the own class: for a
	// cluster it is that of the largest class that it ever had, for a replica that of its source.
	// It never shrinks.
	SharedMemory int64 `json:"shared_memory,omitempty"`
}

// Instance is a DB instance. It is a database of its own, or a member of a cluster.
type Instance struct {
	Common
	Class       string `json:"class"`
	Storage     int    `json:"storage"`     // GiB
	MaxStorage  int    `json:"max_storage"` // GiB, 0: does not grow by itself
	StorageType string `json:"storage_type"`
	IOPS        int    `json:"iops"`
	Throughput  int    `json:"throughput"` // MiB/s
	MultiAZ     bool   `json:"multi_az"`
	Zone        string `json:"zone"` // asked for, or ""
	OptionGroup string `json:"option_group"`
	License     string `json:"license"`
	AutoMinor   bool   `json:"auto_minor"`
	Public      bool   `json:"public"`
	// Restart counts the changes that need a restart, such as one of the class.
	Restart int64 `json:"restart"`

	Cluster string `json:"cluster,omitempty"` // resource id of its cluster
	Tier    int    `json:"tier"`
	// ClusterTaken is what took effect of the cluster's parameter group.
	ClusterTaken Taken `json:"cluster_taken,omitzero"`
	// Auto says that a Multi-AZ DB cluster made the instance. The cluster also deletes it.
	Auto bool `json:"auto,omitempty"`

	// Source is the resource id of the database that this instance follows, or "".
	Source string `json:"source,omitempty"`
	// Promoted says that the instance once followed Source, and shall not follow it any more.
	Promoted bool `json:"promoted,omitempty"`
	// Announced says that the instance has been available once as a member of a cluster.
	Announced bool `json:"announced,omitempty"`
	// StorageChanged is when the size of the storage changed last. It is zero if it never did.
	StorageChanged time.Time `json:"storage_changed,omitzero"`
}

// Values holds what a modification changes, or what it replaces. A zero value means no change.
type Values struct {
	Class           string   `json:"class,omitempty"`
	Disk            *Storage `json:"disk,omitempty"`
	MultiAZ         *bool    `json:"multi_az,omitempty"`
	BackupRetention *int     `json:"backup_retention,omitempty"`
	IAMAuth         *bool    `json:"iam_auth,omitempty"`
	Name            string   `json:"name,omitempty"`
	Port            int      `json:"port,omitempty"`
	// CACertificate is the authority that signs the server's certificate. RotationRestart asks for
	// a restart with the new certificate.
	CACertificate   string `json:"ca_certificate,omitempty"`
	RotationRestart bool   `json:"rotation_restart,omitempty"`
	// Password says that the master user's password changes. The password is not kept here in any
	// form.
	Password bool `json:"password,omitempty"`
}

// Disk returns the instance's storage.
func (i Instance) Disk() Storage {
	return Storage{Type: i.StorageType, GiB: i.Storage, IOPS: i.IOPS, MiBps: i.Throughput}
}

// SetDisk sets the instance's storage.
func (i *Instance) SetDisk(s Storage) {
	i.StorageType, i.Storage, i.IOPS, i.Throughput = s.Type, s.GiB, s.IOPS, s.MiBps
}

// Cluster is a DB cluster: Aurora's writer with readers, or a Multi-AZ DB cluster.
type Cluster struct {
	Common
	Zones         []string `json:"zones"` // asked for; none: any
	ReaderAddress string   `json:"reader_address"`
	ReaderFormer  []string `json:"former_reader_addresses,omitempty"` // see Former
	// Class, Storage and IOPS belong to a Multi-AZ DB cluster (engine postgres),
	// whose three instances Howdah makes itself.
	Class       string `json:"class,omitempty"`
	Storage     int    `json:"storage,omitempty"`
	StorageType string `json:"storage_type,omitempty"`
	IOPS        int    `json:"iops,omitempty"`
	Public      bool   `json:"public,omitempty"`
	AutoMinor   bool   `json:"auto_minor"`
	OptionGroup string `json:"option_group,omitempty"` // asked for, or ""
	// Restart counts the changes that need a restart of all members.
	Restart int64 `json:"restart"`
	// CloneGroup is what a cluster and its clones have in common; "": it has none, and is none.
	CloneGroup string `json:"clone_group,omitempty"`
}

// Disk returns the storage of each instance of a Multi-AZ DB cluster.
func (c Cluster) Disk() Storage {
	return Storage{Type: c.StorageType, GiB: c.Storage, IOPS: c.IOPS}
}

// SetDisk sets the storage of each instance of a Multi-AZ DB cluster.
func (c *Cluster) SetDisk(s Storage) { c.StorageType, c.Storage, c.IOPS = s.Type, s.GiB, s.IOPS }

// MultiAZ reports whether Howdah makes the cluster's instances itself.
func (c Cluster) MultiAZ() bool { return c.Engine == Postgres }

// Endpoint is a custom endpoint of a cluster.
type Endpoint struct {
	Scope
	Name       string    `json:"name"`
	ResourceID string    `json:"resource_id"`
	Address    string    `json:"address"`
	Former     []string  `json:"former_addresses,omitempty"` // see Common
	Cluster    string    `json:"cluster"`                    // resource id
	Type       string    `json:"type"`                       // READER or ANY
	Static     []string  `json:"static"`                     // resource ids of instances, none: all
	Excluded   []string  `json:"excluded"`
	Generation int64     `json:"generation"`
	Deleting   bool      `json:"deleting"`
	Tags       []Tag     `json:"tags"`
	Created    time.Time `json:"created"`
}

// Going reports whether the resource is being deleted, or is to be deleted once its final snapshot is
// there.
func (c Common) Going() bool { return c.Deleting || c.Final != "" }

// Hidden reports whether the database is an operation's own, which users do not see.
func (c Common) Hidden() bool { return c.MadeBy != "" }

// Follows reports whether the instance replicates from another database.
func (i Instance) Follows() bool { return i.Source != "" && !i.Promoted }

// Promote ends the following. The master user's password is the one that the data came with: the
// newest of the database that they come from.
func (i *Instance) Promote(from Common) {
	i.MasterUser, i.Verifier, i.PasswordSerial = from.MasterUser, from.Verifier, from.PasswordSerial
	i.Promoted = true
}

// Begin counts a change that the planner carries out, with the status to show, the values before it,
// and the events to raise when it is done.
func (c *Common) Begin(status string, before *Values, done ...string) {
	c.Change++
	c.ChangeStatus, c.ChangeEvents, c.Before = status, done, before
}

// Moving reports whether the address of the endpoint is changing. For a cluster it is the writer
// endpoint.
func (c Common) Moving() bool { return len(c.Former) > 0 }

// Moving reports whether the address of the writer endpoint or of the reader endpoint is changing.
func (c Cluster) Moving() bool { return c.Common.Moving() || len(c.ReaderFormer) > 0 }

// GroupKey names a group of an account and region.
type GroupKey struct {
	Scope
	Name string
}

// SubnetGroupKey returns the key of the resource's subnet group.
func (c Common) SubnetGroupKey() GroupKey { return GroupKey{c.Scope, c.SubnetGroup} }

// ServedAt returns an address at which the endpoint is certainly served. While the endpoint is
// being moved, that is a former address.
func (c Common) ServedAt() string {
	if c.Moving() {
		return c.Former[0]
	}
	return c.Address
}

// ZoneName returns the API's name of a zone: the region and the zone's letter. "" stays "".
func (s Scope) ZoneName(zone string) string {
	if zone == "" {
		return ""
	}
	return s.Region + zone
}

// ParseZone returns the zone that the API's name means in this scope, and whether the name is of
// this scope's region.
func (s Scope) ParseZone(name string) (string, bool) {
	zone, ok := strings.CutPrefix(name, s.Region)
	return zone, ok && zone != ""
}
