// Package look is what the actions of RDS see: one consistent look at all resources of an
// account, made of the state for one call. It finds what a request names, knows what is known
// of a database and the word for it, and which zones and hosts there are. It writes nothing:
// where it answers writes, such as that of an event, its caller commits them. A package of its
// own for each kind of resource stands on it.
package look

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Source makes looks. What concerns no account, or another place than an account's records,
// is asked of it directly; a look passes such questions on. All fields are required that do
// not say otherwise.
type Source struct {
	Cache   *state.Cache
	Records *view.Records
	Places  *view.Places
	Policy  plan.Policy
	Now     func() time.Time
	// Hearing knows who was heard since this control plane started; nil: everyone was.
	Hearing Hearing
	// Began is the revision at which it told of itself, which edges answer; 0: none did so
	// in vain.
	Began int64
	// Started is when this process began. What the state says of others then may be of
	// before they, too, died.
	Started time.Time

	settled atomic.Bool
	zones   zones
}

// Look is one look at all resources of an account, taken once a call, so that an
// answer does not contradict itself. Calls share what is in it: nothing of that may be
// altered, but for Checked.
type Look struct {
	*Source
	account   *view.Account
	Instances []state.Record[*spec.Instance] // that users see, by region and name; this and what follows is the account's
	Instance  map[string]*spec.Instance      // by resource id
	Members   map[string][]state.Record[*spec.Instance]
	Followers map[string][]state.Record[*spec.Instance]
	Clusters  []state.Record[spec.Cluster]
	Cluster   map[string]spec.Cluster
	Groups    plan.Groups
	Checked   map[string]state.Op // by key of a group that was checked: it is as it was then
}

// Of is a look at an account as it is now.
func (s *Source) Of(account string) *Look {
	made := s.Records.Made()
	a := made.Of(account)
	return &Look{
		Source: s, account: a, Instances: a.Shown, Instance: a.Instance, Members: a.Members, Followers: a.Followers,
		Clusters: a.Clusters, Cluster: a.Cluster, Groups: made.Groups, Checked: map[string]state.Op{},
	}
}

// EndpointsOf are the custom endpoints of a cluster, by name.
func (l *Look) EndpointsOf(cluster string) []state.Record[spec.Endpoint] {
	return slices.DeleteFunc(state.LoadAll[spec.Endpoint](l.Cache, state.EndpointRoot), func(r state.Record[spec.Endpoint]) bool {
		return r.Value.Cluster != cluster
	})
}

// AuroraStorage is what RDS shows of the storage that the instances of an Aurora
// cluster share.
var AuroraStorage = spec.Storage{Type: "aurora", GiB: 1}

// Inherit gives a member what its cluster has for all of them.
func (l *Look) Inherit(i spec.Instance) spec.Instance {
	c, ok := l.Cluster[i.Cluster]
	if !ok {
		return i
	}
	i.MasterUser, i.DBName, i.Port, i.Version = c.MasterUser, c.DBName, c.Port, c.Version
	i.BackupRetention, i.BackupWindow, i.SecurityGroups = c.BackupRetention, c.BackupWindow, c.SecurityGroups
	i.IAMAuth, i.StorageKey = c.IAMAuth, c.StorageKey
	if !c.MultiAZ() {
		i.SetDisk(AuroraStorage)
	}
	return i
}

// With is the look with a cluster as it is about to be.
func (l *Look) With(c spec.Cluster) *Look {
	next := *l
	next.Cluster = maps.Clone(l.Cluster)
	next.Cluster[c.ResourceID] = c
	return &next
}

// FindInstance finds an instance of the caller's region by name or ARN.
func (l *Look) FindInstance(scope spec.Scope, identifier string) (state.Record[spec.Instance], error) {
	in, name := Locate(scope, identifier, "db")
	if in != scope {
		return state.Record[spec.Instance]{}, noInstance(name)
	}
	return l.FindSource(scope, identifier)
}

// InstancesIn are the instances of a region, by name.
func (l *Look) InstancesIn(scope spec.Scope) []state.Record[*spec.Instance] {
	return l.account.In(scope)
}

// FindSource finds an instance of any region, by ARN, or of the caller's by name.
func (l *Look) FindSource(scope spec.Scope, identifier string) (state.Record[spec.Instance], error) {
	in, name := Locate(scope, identifier, "db")
	r, found := l.account.Named(in, name)
	if !found {
		return state.Record[spec.Instance]{}, noInstance(name)
	}
	return state.Copy(r), nil
}

func noInstance(name string) error {
	return OrBlank(name, "DBInstanceIdentifier", wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance %s not found.", name))
}

// FindCluster finds a cluster of the caller's region by name or ARN.
func (l *Look) FindCluster(scope spec.Scope, identifier string) (state.Record[spec.Cluster], error) {
	in, name := Locate(scope, identifier, "cluster")
	for _, r := range l.Clusters {
		if in == scope && r.Value.Scope == in && r.Value.Name == name {
			return r, nil
		}
	}
	return state.Record[spec.Cluster]{}, OrBlank(name, "DBClusterIdentifier", wire.NewError(rds.ErrDBClusterNotFound, "DBCluster %s not found.", name))
}

// ClusterRecord is the record of a cluster by its resource id.
func (l *Look) ClusterRecord(resourceID string) (state.Record[spec.Cluster], bool) {
	i := slices.IndexFunc(l.Clusters, func(r state.Record[spec.Cluster]) bool { return r.Value.ResourceID == resourceID })
	if i < 0 {
		return state.Record[spec.Cluster]{}, false
	}
	return l.Clusters[i], true
}

// InstancesOf are the instances of a cluster, by name.
func (l *Look) InstancesOf(cluster string) []spec.Instance {
	var all []spec.Instance
	for _, r := range l.Members[cluster] {
		all = append(all, *r.Value)
	}
	return all
}

// MembersOf are the records of the instances of a cluster, by name.
func (l *Look) MembersOf(cluster string) []state.Record[spec.Instance] {
	return state.Copies(l.Members[cluster])
}

// FollowersOf are the records of the databases that follow one, by name.
func (l *Look) FollowersOf(resourceID string) []state.Record[spec.Instance] {
	return state.Copies(l.Followers[resourceID])
}

// Root is the database that the data of an instance come from: at the end of the
// chain of those that follow each other.
func (l *Look) Root(i spec.Instance) spec.Common {
	for i.Follows() {
		if c, ok := l.Cluster[i.Source]; ok {
			return c.Common
		}
		source, ok := l.Instance[i.Source]
		if !ok {
			return i.Common
		}
		if c, ok := l.Cluster[source.Cluster]; ok {
			return c.Common
		}
		i = *source
	}
	return i.Common
}

// AuroraIO is Aurora's other storage type; here the two are alike.
const AuroraIO = "aurora-iopt1"

// HostedZone stands where RDS has the id of the DNS zone of its endpoints.
const HostedZone = "HOWDAH"
