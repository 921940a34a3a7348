package state

import "strings"

// Root is the beginning of all keys of Howdah. Patroni keeps its own keys below patroni.Namespace.
const Root = "/howdah/"

// The families of keys. Each has one writer, which its comment names, and a bound, which Bounds
// names.
const (
	// SpecRoot: what users asked for. Written by server: by API handlers, and by the maintenance
	// window on behalf of an earlier request. Also written by reconcile when it takes a database
	// over after the home was restored, and by the operations' runner when an operation closes, opens,
	// exchanges or deletes databases. Removed by reconcile once nothing of a deleted database is
	// left.
	SpecRoot = Root + "spec/"
	// InstanceRoot, ClusterRoot and EndpointRoot are below SpecRoot, by account,
	// region and name.
	InstanceRoot = SpecRoot + "instance/"
	ClusterRoot  = SpecRoot + "cluster/"
	EndpointRoot = SpecRoot + "endpoint/"
	// ParameterGroupRoot is below SpecRoot, by kind of group, account, region and name.
	ParameterGroupRoot = SpecRoot + "parameter-group/"
	// CatalogueRoot: the parameters of each version of PostgreSQL. Written once, by the first agent
	// that has the version.
	CatalogueRoot = Root + "catalogue/"
	// SubnetGroupRoot and OptionGroupRoot: groups that users made, by account, region
	// and name. Written by server.
	SubnetGroupRoot = Root + "subnet-group/"
	OptionGroupRoot = Root + "option-group/"
	// SecurityGroupRoot: groups with rules on who may connect to databases, by
	// account, region and id. Written by server. The default group of an account and
	// region has a record only once it was changed.
	SecurityGroupRoot = Root + "security-group/"
	// KeyRoot: access keys, their secrets sealed. Written by server.
	KeyRoot = Root + "key/"
	// AuthorityRoot: authorities that sign certificates of databases' servers, their keys sealed.
	// DefaultAuthorityRoot: the authority that new databases of an account and region get. Both are
	// written by server.
	AuthorityRoot        = Root + "authority/"
	DefaultAuthorityRoot = Root + "default-authority/"
	// MembersAuthority: the authority that signs the certificates of members, its key sealed.
	// Written by whichever control plane is first.
	MembersAuthority = Root + "members-authority"
	// SecretRoot: passwords of master users that Howdah manages, sealed, by database. Written by
	// server. The operations' runner moves one to the database that takes the place. Reconcile removes those of databases that no longer exist.
	SecretRoot = Root + "secret/"
	// KMSKeyRoot and KMSAliasRoot: the KMS keys of accounts, sealed, and their other names.
	// Written by server.
	KMSKeyRoot   = Root + "kms-key/"
	KMSAliasRoot = Root + "kms-alias/"
	// StorageKeyRoot: the keys of databases' storage, sealed. Written by server when a database is
	// made. Removed by reconcile with the database.
	StorageKeyRoot = Root + "storage-key/"
	// LayoutRoot: what was decided for each database. Written by reconcile.
	LayoutRoot = Root + "layout/"
	// AssignRoot: what each host is to run. Written by reconcile.
	AssignRoot = Root + "assign/"
	// TaskRoot: deeds asked of a host. Written by reconcile.
	TaskRoot = Root + "task/"
	// ResultRoot: their outcomes. Written by the host's agent.
	ResultRoot = Root + "result/"
	// ReportRoot: what hosts see of their members. Written by the host's agent.
	ReportRoot = Root + "report/"
	// HostRoot: what hosts are. Written by the host's agent.
	HostRoot = Root + "host/"
	// LiveRoot: which hosts are alive. Written by the judge.
	LiveRoot = Root + "live/"
	// DrainRoot: which hosts are being emptied. Written by server.
	DrainRoot = Root + "drain/"
	// FenceRoot: primaries that must not write any more. Written by the judge.
	FenceRoot = Root + "fence/"
	// WitnessRoot and CutRoot: the answers of standbys' hosts to a fence case. Written by their
	// agents.
	WitnessRoot = Root + "witness/"
	CutRoot     = Root + "cut/"
	// DeathRoot: primaries that were proved dead on their own host. Written by the host's agent.
	// Removed by the gate that lets the member be promoted again.
	DeathRoot = Root + "death/"
	// PleaRoot: promotions that wait for a fence. Written by the gate of the member that waits.
	// Removed by the gate that lets a member through, and by the judge.
	PleaRoot = Root + "plea/"
	// PassedRoot: the member that a gate let through last. Written by gates. Removed by the judge
	// if the previous primary leads on.
	PassedRoot = Root + "passed/"
	// TimelineRoot: the newest timeline that a promotion of a database was to begin. Written by gates.
	// Removed by reconcile with the database.
	TimelineRoot = Root + "timeline/"
	// SwornRoot: hosts that are off, as an operator swore. Written by server. Removed by the judge
	// when the host is heard.
	SwornRoot = Root + "sworn/"
	// IncidentRoot: failures that an agent dealt with by itself. Written by that agent.
	IncidentRoot = Root + "incident/"
	// AttemptRoot: the member that a host was last about to fence. Written by the host's agent, to
	// find out whether etcd takes writes.
	AttemptRoot = Root + "attempt/"
	// FailoverRoot: post-mortems. Written by reconcile.
	FailoverRoot = Root + "failover/"
	// LeadRoot: who led each database when reconcile last looked. Written by reconcile.
	LeadRoot = Root + "lead/"
	// NoticeRoot: which lasting facts about each database events have already told of. Written by
	// reconcile.
	NoticeRoot = Root + "notice/"
	// AddressRoot: endpoint addresses in use. Written by server, and by the operations' runner when two
	// databases change places. Removed by reconcile with the
	// database.
	AddressRoot = Root + "address/"
	// RouteRoot: where each endpoint leads. Written by reconcile. The operations' runner removes that of
	// a database whose place another one takes.
	RouteRoot = Root + "route/"
	// WayRoot: where each edge leads the clients of a route now. Written by the edges.
	WayRoot = Root + "way/"
	// SwitchRoot: what the edges saw when a route moved. Written by the edges.
	SwitchRoot = Root + "switch/"
	// EventRoot: events of the API. Written together with the change that they tell of.
	EventRoot = Root + "event/"
	// EventSubRoot: which events go to which topic. Written by server.
	EventSubRoot = Root + "eventsub/"
	// TopicRoot and SubscriptionRoot: topics of SNS, and their subscribers. Written by server.
	// Notify removes subscriptions that nobody confirmed in time.
	TopicRoot        = Root + "topic/"
	SubscriptionRoot = Root + "subscription/"
	// MessageRoot: messages that were published. Written by server. Removed by notify in the
	// transaction that writes their deliveries.
	MessageRoot = Root + "message/"
	// DeliveryRoot: messages on their way to a subscription. Written by notify.
	DeliveryRoot = Root + "delivery/"
	// NotifyRoot: the revision up to which events were published, the signers' certificates, and,
	// below GivenUpRoot, how much was given up. Written by notify.
	NotifyRoot  = Root + "notify/"
	GivenUpRoot = NotifyRoot + "given-up/"
	// ControlRoot: the control planes. Each writes its own key.
	ControlRoot = Root + "control/"
	// EdgeRoot: the edges. Each writes its own key.
	EdgeRoot = Root + "edge/"
	// BetweenRoot: the addresses that members see in place of clients', for each edge that hides
	// clients. Each edge writes its own key, and leaves it when it ends, because what it made goes
	// on working.
	BetweenRoot = Root + "between/"
	// RunsRoot: which edges run now. Each edge writes its own key under a lease. It writes the key
	// again whenever a control plane writes its own key below ControlRoot.
	RunsRoot = Root + "runs/"
	// RestoredRoot: says that the state was restored. Written by restore, while nothing runs.
	RestoredRoot = Root + "restored/"
	// GoneRoot: hosts that an operator has forgotten since then. Written by server.
	GoneRoot = RestoredRoot + "gone/"
	// HeldRoot: databases that were not taken over since then. Written by restore. Removed by
	// reconcile.
	HeldRoot = Root + "held/"
	// HoldingRoot: which data hosts have since then. Written by their agents.
	HoldingRoot = Root + "holding/"
	// HomeFormat is the number of the format of all records (package format). The control plane
	// that leads writes it, and only ever writes a larger number.
	HomeFormat = Root + "format"
	// OperationRoot: operations on databases. Whoever begins one writes it once. From then on the
	// operations' runner of the control plane that leads writes it, and removes old ones.
	OperationRoot = Root + "operation/"
	// OperationCancelRoot: operations that are to be cancelled. Written by server. Removed by the
	// runner.
	OperationCancelRoot = Root + "operation-cancel/"
	// RepositoryRoot: repositories of backups, by name, their secrets sealed. Written by server. The
	// first control plane of a home on one machine writes the first one.
	RepositoryRoot = Root + "repository/"
	// BucketRoleRoot: roles that let databases into buckets, by account and name, their secrets
	// sealed. Written by server.
	BucketRoleRoot = Root + "bucket-role/"
	// BackupRoot: the backups that are whole in repositories, by database, repository and label.
	// Written and removed by the operations' runner.
	BackupRoot = Root + "backup/"
	// SnapshotRoot and ClusterSnapshotRoot: snapshots, by account, region and name. Written by
	// server. The operations' runner writes one once more when it is made, and makes and removes
	// those of the backup window.
	SnapshotRoot        = Root + "snapshot/instance/"
	ClusterSnapshotRoot = Root + "snapshot/cluster/"
	// AutomatedRoot: the automated backups of databases, also of those that were deleted. Written by
	// the operations' runner, and by server in the transaction that deletes a database. Removed by
	// the runner.
	AutomatedRoot = Root + "automated/"
	// BackupPartRoot: the parts that databases have of repositories. Written and removed by the
	// operations' runner.
	BackupPartRoot = Root + "backup-part/"
	// DrillRoot: the newest restore drill of each database. Written by the operations' runner.
	DrillRoot = Root + "drill/"
	// JobRoot: what operations ask of hosts. Written and removed by the operations' runner.
	JobRoot = Root + "job/"
	// JobReportRoot: how far jobs are. Written by the host's agent, which removes a report when its
	// job is gone. The operations' runner removes those of hosts that were forgotten.
	JobReportRoot = Root + "job-report/"
	// DNSRoot: the DNS zone in which databases have names. Written by a control plane that was started
	// with one.
	DNSRoot = Root + "dns/"
	// MetaRoot: identity of the home. Written once, at the first start.
	MetaRoot = Root + "meta/"
	// ElectionRoot: which control plane leads.
	ElectionRoot = Root + "election/"
)

func scoped(root, account, region, name string) string {
	return root + account + "/" + region + "/" + name
}

// Instance is the key of a DB instance.
func Instance(account, region, name string) string {
	return scoped(InstanceRoot, account, region, name)
}

// Cluster is the key of a DB cluster.
func Cluster(account, region, name string) string { return scoped(ClusterRoot, account, region, name) }

// Endpoint is the key of a custom cluster endpoint.
func Endpoint(account, region, name string) string {
	return scoped(EndpointRoot, account, region, name)
}

// ParameterGroup is the key of a parameter group.
func ParameterGroup(kind, account, region, name string) string {
	return scoped(ParameterGroupRoot+kind+"/", account, region, name)
}

// Catalogue is the key of the parameters of a version of PostgreSQL, such as 15.18.
func Catalogue(version string) string { return CatalogueRoot + version }

// SubnetGroup is the key of a subnet group.
func SubnetGroup(account, region, name string) string {
	return scoped(SubnetGroupRoot, account, region, name)
}

// OptionGroup is the key of an option group.
func OptionGroup(account, region, name string) string {
	return scoped(OptionGroupRoot, account, region, name)
}

// SecurityGroup is the key of a security group, by its id.
func SecurityGroup(account, region, id string) string {
	return scoped(SecurityGroupRoot, account, region, id)
}

// Key is the key of an access key.
func Key(id string) string { return KeyRoot + id }

// Authority is the key of an authority, by its name.
func Authority(id string) string { return AuthorityRoot + id }

// DefaultAuthority is the key of an account's choice in a region.
func DefaultAuthority(account, region string) string {
	return DefaultAuthorityRoot + account + "/" + region
}

// Secret is the key of the password of a database's master user.
func Secret(database string) string { return SecretRoot + database }

// KMSKey is the key of a KMS key, by its id.
func KMSKey(account, region, id string) string { return scoped(KMSKeyRoot, account, region, id) }

// KMSAlias is the key of an alias of a KMS key, such as alias/aws/rds.
func KMSAlias(account, region, alias string) string {
	return scoped(KMSAliasRoot, account, region, alias)
}

// StorageKey is the key of the key of a database's storage.
func StorageKey(database string) string { return StorageKeyRoot + database }

// Layout is the key of a database's layout.
func Layout(database string) string { return LayoutRoot + database }

// Assign is the key of a member's assignment.
func Assign(host, member string) string { return AssignPrefix(host) + member }

// AssignPrefix is what the assignments of a host begin with.
func AssignPrefix(host string) string { return AssignRoot + host + "/" }

// Task is the key of a task. An id may have slashes, as keys may.
func Task(host, id string) string { return TaskPrefix(host) + id }

// TaskPrefix is what the tasks of a host begin with.
func TaskPrefix(host string) string { return TaskRoot + host + "/" }

// Result is the key of a task's result, found by the task's id alone.
func Result(id string) string { return ResultRoot + id }

// Report is the key of a member's report.
func Report(host, member string) string { return ReportRoot + host + "/" + member }

// Host is the key of a host's description.
func Host(name string) string { return HostRoot + name }

// Live is the key of the judgement on a host.
func Live(host string) string { return LiveRoot + host }

// Drain is the key that asks for a host to be emptied.
func Drain(host string) string { return DrainRoot + host }

// Fence is the key of the fence case of a primary, by its member name. There may be several cases:
// the previous primary may still be away when its successor is lost, too.
func Fence(database, leader string) string { return FencePrefix(database) + leader }

// FencePrefix is what the fence cases of a database begin with.
func FencePrefix(database string) string { return FenceRoot + database + "/" }

// Witness is the key of what a host saw of a suspected primary, by the case's id.
func Witness(id, host string) string { return WitnessPrefix(id) + host }

// WitnessPrefix is what the witnesses of a fence case begin with.
func WitnessPrefix(id string) string { return WitnessRoot + id + "/" }

// Cut is the key of a standby's report that it is cut off from a primary, by the case's id.
func Cut(id, member string) string { return CutPrefix(id) + member }

// CutPrefix is what the cuts of a fence case begin with.
func CutPrefix(id string) string { return CutRoot + id + "/" }

// Cuts is what the cuts of all fence cases of a database begin with, because the id of a case
// begins with that of its database.
func Cuts(database string) string { return CutRoot + database + "-" }

// Death is the key of a member that was proved dead.
func Death(database, member string) string { return DeathPrefix(database) + member }

// DeathPrefix is what the deaths of a database begin with.
func DeathPrefix(database string) string { return DeathRoot + database + "/" }

// Plea is the key of a database's promotion that waits.
func Plea(database string) string { return PleaRoot + database }

// Passed is the key of the member that a gate of a database let through last.
func Passed(database string) string { return PassedRoot + database }

// Timeline is the key of the newest timeline that a promotion of a database was to begin.
func Timeline(database string) string { return TimelineRoot + database }

// Sworn is the key of an operator's word on a host.
func Sworn(host string) string { return SwornRoot + host }

// Incident is the key of a failure that a host dealt with.
func Incident(database, id string) string { return IncidentRoot + database + "/" + id }

// Attempt is the key of the member that a host was last about to fence.
func Attempt(host string) string { return AttemptRoot + host }

// Failover is the key of a post-mortem; ids sort by time.
func Failover(database, id string) string { return FailoverRoot + database + "/" + id }

// Lead is the key of a database's last known leader.
func Lead(database string) string { return LeadRoot + database }

// Notice is the key of what events have already told of a database.
func Notice(database string) string { return NoticeRoot + database }

// Address is the key that claims an endpoint address.
func Address(ip string) string { return AddressRoot + ip }

// Route is the key of an endpoint's route.
func Route(id string) string { return RouteRoot + id }

// Way is the key of where an edge leads the clients of a route.
func Way(route, edge string) string { return WayPrefix(route) + edge }

// WayPrefix is what the ways of a route begin with.
func WayPrefix(route string) string { return WayRoot + route + "/" }

// Switch is the key of what an edge last saw of a route.
func Switch(edge, route string) string { return SwitchRoot + edge + "/" + route }

// Event is the key of an event; ids sort by time.
func Event(account, region, id string) string { return scoped(EventRoot, account, region, id) }

// EventSub is the key of an event subscription. Names that differ only in case have the same key.
func EventSub(account, region, name string) string {
	return scoped(EventSubRoot, account, region, strings.ToLower(name))
}

// Topic is the key of a topic of SNS.
func Topic(account, region, name string) string { return scoped(TopicRoot, account, region, name) }

// Subscription is the key of a subscription.
func Subscription(account, region, topic, id string) string {
	return SubscriptionPrefix(account, region, topic) + id
}

// SubscriptionPrefix is what the subscriptions of a topic begin with.
func SubscriptionPrefix(account, region, topic string) string {
	return scoped(SubscriptionRoot, account, region, topic) + "/"
}

// Message is the key of a published message; ids sort by time.
func Message(id string) string { return MessageRoot + id }

// Delivery is the key of a message on its way. The tail of a subscription's key names the
// subscription.
func Delivery(subscription, message string) string { return DeliveryPrefix(subscription) + message }

// DeliveryPrefix is what the deliveries to a subscription begin with.
func DeliveryPrefix(subscription string) string { return DeliveryRoot + subscription + "/" }

// GivenUp is the key of what was given up for a subscription. The tail of the subscription's key
// names it.
func GivenUp(subscription string) string { return GivenUpRoot + subscription }

// NotifyCursor is the key of the revision up to which events were published.
func NotifyCursor() string { return NotifyRoot + "cursor" }

// Signer is the key of a certificate that messages are signed with.
func Signer(fingerprint string) string { return NotifyRoot + "signer/" + fingerprint }

// Control is the key of a member of the control plane.
func Control(name string) string { return ControlRoot + name }

// Edge is the key of an edge.
func Edge(name string) string { return EdgeRoot + name }

// Between is the key of the addresses that members see of an edge.
func Between(edge string) string { return BetweenRoot + edge }

// Runs is the key that exists as long as an edge runs.
func Runs(edge string) string { return RunsRoot + edge }

// DNSZone is the key of the home's DNS zone.
func DNSZone() string { return DNSRoot + "zone" }

// Restored is the key of the last restoration of the state.
func Restored() string { return RestoredRoot + "home" }

// Gone is the key of a host that was forgotten since the home was restored.
func Gone(host string) string { return GoneRoot + host }

// Hold is the key of a database that was not taken over yet.
func Hold(database string) string { return HeldRoot + database }

// Holding is the key of the list of a host's copies.
func Holding(host string) string { return HoldingRoot + host }

// HeldCopy is the key of one copy of a host.
func HeldCopy(host, member string) string { return HoldingPrefix(host) + member }

// HoldingPrefix is what the copies of a host begin with.
func HoldingPrefix(host string) string { return HoldingRoot + host + "/" }

// Operation is the key of an operation.
func Operation(id string) string { return OperationRoot + id }

// OperationCancel is the key of a request to cancel an operation.
func OperationCancel(id string) string { return OperationCancelRoot + id }

// Tail returns the part of a key after its family's root.
func Tail(key, root string) string { return strings.TrimPrefix(key, root) }

// Repository is the key of a repository.
func Repository(name string) string { return RepositoryRoot + name }

// BucketRole is the key of a role that lets databases into a bucket.
func BucketRole(account, name string) string { return BucketRoleRoot + account + "/" + name }

// Backup is the key of a backup.
func Backup(database, repository, label string) string {
	return BackupPrefix(database) + repository + "/" + label
}

// BackupPrefix is what the backups of a database begin with.
func BackupPrefix(database string) string { return BackupRoot + database + "/" }

// BackupPart is the key of the part that a database has of a repository.
func BackupPart(database, repository string) string {
	return BackupPartRoot + database + "/" + repository
}

// Snapshot is the key of a DB snapshot.
func Snapshot(account, region, name string) string {
	return scoped(SnapshotRoot, account, region, name)
}

// ClusterSnapshot is the key of a DB cluster snapshot.
func ClusterSnapshot(account, region, name string) string {
	return scoped(ClusterSnapshotRoot, account, region, name)
}

// Automated is the key of the automated backups of a database.
func Automated(database string) string { return AutomatedRoot + database }

// Drill is the key of the newest restore drill of a database.
func Drill(database string) string { return DrillRoot + database }

// Job is the key of a job of a host. A name may have slashes.
func Job(host, name string) string { return JobPrefix(host) + name }

// JobPrefix is what the jobs of a host begin with.
func JobPrefix(host string) string { return JobRoot + host + "/" }

// JobReport is the key of how far a job of a host is.
func JobReport(host, name string) string { return JobReportPrefix(host) + name }

// JobReportPrefix is what the reports of a host's jobs begin with.
func JobReportPrefix(host string) string { return JobReportRoot + host + "/" }
