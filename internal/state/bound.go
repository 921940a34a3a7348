package state

import "howdah/internal/model/patroni"

// Bound says why a family of keys does not grow for ever.
type Bound string

// The bounds.
const (
	// Asked: each record stands for something that users or operators made, and is removed when
	// they delete that.
	Asked Bound = "as many as were asked for"
	// PerDatabase: at most a few for each database, or for each member of one. Reconcile removes
	// those of databases that no longer exist.
	PerDatabase Bound = "a few for each database"
	// PerPart: one for each host, edge or control plane that ever joined.
	PerPart Bound = "one for each host, edge or control plane"
	// PerVersion: one for each version of PostgreSQL that was ever installed.
	PerVersion Bound = "one for each version of PostgreSQL"
	// Aged: reconcile removes a record when it is old. A constant of its package says when that is.
	Aged Bound = "until it is old"
	// UntilDone: a record is removed with what it belongs to: a case, a task, a delivery.
	UntilDone Bound = "until what it belongs to is over"
	// Leased: a record goes with the lease of its writer.
	Leased Bound = "as long as its writer runs"
)

// Bounds has the bounds of all families. A family below another one has a line of its own if its
// bound is another one.
var Bounds = map[string]Bound{
	SpecRoot:             Asked,
	InstanceRoot:         Asked,
	ClusterRoot:          Asked,
	EndpointRoot:         Asked,
	ParameterGroupRoot:   Asked,
	CatalogueRoot:        PerVersion,
	SubnetGroupRoot:      Asked,
	OptionGroupRoot:      Asked,
	SecurityGroupRoot:    Asked,
	KeyRoot:              Asked,
	AuthorityRoot:        Asked, // the home's first, and one for each rotation of a line
	DefaultAuthorityRoot: Asked,
	KMSKeyRoot:           Asked,
	KMSAliasRoot:         Asked,
	StorageKeyRoot:       PerDatabase,
	SecretRoot:           PerDatabase,
	LayoutRoot:           PerDatabase,
	AssignRoot:           PerDatabase,
	TaskRoot:             UntilDone,
	ResultRoot:           UntilDone,
	ReportRoot:           PerDatabase,
	HostRoot:             PerPart,
	LiveRoot:             PerPart,
	DrainRoot:            PerPart,
	FenceRoot:            UntilDone,
	WitnessRoot:          UntilDone,
	CutRoot:              UntilDone,
	DeathRoot:            PerDatabase,
	PleaRoot:             PerDatabase, // removed by the judge, as those of PassedRoot are
	PassedRoot:           PerDatabase,
	TimelineRoot:         PerDatabase,
	SwornRoot:            PerPart,
	IncidentRoot:         Aged,
	AttemptRoot:          PerPart,
	FailoverRoot:         Aged, // postmortem.Keep and postmortem.Most
	LeadRoot:             PerDatabase,
	NoticeRoot:           PerDatabase,
	AddressRoot:          PerDatabase,
	RouteRoot:            PerDatabase,
	WayRoot:              PerDatabase,
	SwitchRoot:           PerDatabase,
	EventRoot:            Aged, // event.Keep
	EventSubRoot:         Asked,
	TopicRoot:            Asked,
	SubscriptionRoot:     Asked,
	MessageRoot:          UntilDone,
	DeliveryRoot:         UntilDone, // or given up; their number is limited by account
	NotifyRoot:           PerPart,   // a certificate for each year that a control plane signs
	GivenUpRoot:          Asked,
	ControlRoot:          PerPart,
	EdgeRoot:             PerPart,
	BetweenRoot:          PerPart,
	RunsRoot:             Leased,
	RestoredRoot:         PerPart, // one
	GoneRoot:             PerPart,
	HeldRoot:             UntilDone,
	HoldingRoot:          PerPart, // with a key for each member there
	OperationRoot:        Aged,    // operation.Keep and operation.Most; as many at a time as operation.Room says
	OperationCancelRoot:  UntilDone,
	RepositoryRoot:       Asked,
	BucketRoleRoot:       Asked,
	BackupRoot:           Asked, // as long as a snapshot or the retention period needs it
	SnapshotRoot:         Asked,
	ClusterSnapshotRoot:  Asked,
	AutomatedRoot:        Asked, // removed with the last backup
	DrillRoot:            PerDatabase,
	BackupPartRoot:       Asked, // as BackupRoot
	JobRoot:              UntilDone,
	JobReportRoot:        UntilDone,
	DNSRoot:              PerPart, // one
	MetaRoot:             PerPart,
	ElectionRoot:         Leased,
	patroni.Namespace:    PerDatabase,
}
