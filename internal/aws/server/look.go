package server

import (
	"maps"
	"slices"
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// look is one look at all resources of an account, taken once a call, so that an
// answer does not contradict itself. Calls share what is in it: nothing of that may be
// altered, but for checked.
type look struct {
	*Server
	account   *view.Account
	instances []state.Record[*spec.Instance] // by region and name; this and what follows is the account's
	instance  map[string]*spec.Instance      // by resource id
	members   map[string][]state.Record[*spec.Instance]
	followers map[string][]state.Record[*spec.Instance]
	clusters  []state.Record[spec.Cluster]
	cluster   map[string]spec.Cluster
	groups    plan.Groups
	checked   map[string]state.Op // by key of a group that was checked: it is as it was then
}

func (s *Server) look(account string) *look {
	made := s.records.Made()
	a := made.Of(account)
	return &look{
		Server: s, account: a, instances: a.Instances, instance: a.Instance, members: a.Members, followers: a.Followers,
		clusters: a.Clusters, cluster: a.Cluster, groups: made.Groups, checked: map[string]state.Op{},
	}
}

// with is the look with a cluster as it is about to be.
func (l *look) with(c spec.Cluster) *look {
	next := *l
	next.cluster = maps.Clone(l.cluster)
	next.cluster[c.ResourceID] = c
	return &next
}

// findInstance finds an instance of the caller's region by name or ARN.
func (l *look) findInstance(scope spec.Scope, identifier string) (state.Record[spec.Instance], error) {
	in, name := locate(scope, identifier, "db")
	if in != scope {
		return state.Record[spec.Instance]{}, noInstance(name)
	}
	return l.findSource(scope, identifier)
}

// instancesIn are the instances of a region, by name.
func (l *look) instancesIn(scope spec.Scope) []state.Record[*spec.Instance] {
	return l.account.In(scope)
}

// findSource finds an instance of any region, by ARN, or of the caller's by name.
func (l *look) findSource(scope spec.Scope, identifier string) (state.Record[spec.Instance], error) {
	in, name := locate(scope, identifier, "db")
	r, found := l.account.Named(in, name)
	if !found {
		return state.Record[spec.Instance]{}, noInstance(name)
	}
	return state.Copy(r), nil
}

func noInstance(name string) error {
	return orBlank(name, "DBInstanceIdentifier", wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance %s not found.", name))
}

// findCluster finds a cluster of the caller's region by name or ARN.
func (l *look) findCluster(scope spec.Scope, identifier string) (state.Record[spec.Cluster], error) {
	in, name := locate(scope, identifier, "cluster")
	for _, r := range l.clusters {
		if in == scope && r.Value.Scope == in && r.Value.Name == name {
			return r, nil
		}
	}
	return state.Record[spec.Cluster]{}, orBlank(name, "DBClusterIdentifier", wire.NewError(rds.ErrDBClusterNotFound, "DBCluster %s not found.", name))
}

// locate takes the ARN of a kind of resource apart, or takes a name to be in the
// caller's scope. Names are in lower case. An ARN of another account leads to a
// scope that the caller's look does not hold.
func locate(scope spec.Scope, identifier, kind string) (spec.Scope, string) {
	identifier = strings.ToLower(strings.TrimSpace(identifier))
	parts := strings.Split(identifier, ":")
	if len(parts) == 7 && parts[0] == "arn" && parts[2] == "rds" && parts[5] == kind {
		return spec.Scope{Region: parts[3], Account: parts[4]}, parts[6]
	}
	return scope, identifier
}

// findNamed finds what a user made in the caller's scope, by its name or the ARN of its
// kind; name is that which was asked for.
func findNamed[T any](s *Server, scope spec.Scope, identifier, kind string, key func(account, region, name string) string) (r state.Record[T], name string, ok bool) {
	in, name := locate(scope, identifier, kind)
	if in != scope || name == "" {
		return r, name, false
	}
	found, err := state.Load[T](s.Cache, key(in.Account, in.Region, name))
	if err != nil {
		return r, name, false
	}
	return found, name, true
}

// clusterRecord is the record of a cluster by its resource id.
func (l *look) clusterRecord(resourceID string) (state.Record[spec.Cluster], bool) {
	i := slices.IndexFunc(l.clusters, func(r state.Record[spec.Cluster]) bool { return r.Value.ResourceID == resourceID })
	if i < 0 {
		return state.Record[spec.Cluster]{}, false
	}
	return l.clusters[i], true
}

// instancesOf are the instances of a cluster, by name.
func (l *look) instancesOf(cluster string) []spec.Instance {
	var all []spec.Instance
	for _, r := range l.members[cluster] {
		all = append(all, *r.Value)
	}
	return all
}

// membersOf are the records of the instances of a cluster, by name.
func (l *look) membersOf(cluster string) []state.Record[spec.Instance] {
	return state.Copies(l.members[cluster])
}

// followersOf are the records of the databases that follow one, by name.
func (l *look) followersOf(resourceID string) []state.Record[spec.Instance] {
	return state.Copies(l.followers[resourceID])
}

// factsOf are those of the database that an instance is, or is part of.
func (l *look) factsOf(i spec.Instance) plan.Facts {
	if i.Cluster == "" {
		return l.instanceFacts(i)
	}
	return l.factsOfCluster(l.cluster[i.Cluster])
}

func (l *look) factsOfCluster(c spec.Cluster) plan.Facts {
	own := l.instancesOf(c.ResourceID)
	f := l.facts(plan.ForCluster(c, own, plan.Links{}))
	f.Known = announced(own)
	return f
}

// status is the status word of an instance.
func (l *look) status(i spec.Instance) string { return l.statusBy(i, l.factsOf(i)) }

func (l *look) statusBy(i spec.Instance, f plan.Facts) string {
	if i.Cluster == "" {
		status := f.DatabaseStatus()
		if status == plan.FailingOver {
			return plan.Rebooting // an instance has no such status
		}
		return whileMoving(i.Moving(), status)
	}
	if _, exists := l.cluster[i.Cluster]; !exists {
		return plan.Deleting
	}
	return whileMoving(i.Moving(), f.SeatStatus(seatOf(f, i), i.Deleting))
}

// clusterStatus is the status word of a cluster.
func (l *look) clusterStatus(c spec.Cluster) string {
	return whileMoving(c.Moving(), l.factsOfCluster(c).DatabaseStatus())
}

// root is the database that the data of an instance come from: at the end of the
// chain of those that follow each other.
func (l *look) root(i spec.Instance) spec.Common {
	for i.Follows() {
		if c, ok := l.cluster[i.Source]; ok {
			return c.Common
		}
		source, ok := l.instance[i.Source]
		if !ok {
			return i.Common
		}
		if c, ok := l.cluster[source.Cluster]; ok {
			return c.Common
		}
		i = *source
	}
	return i.Common
}

// nameFor is how something in one region names a resource: by its name, or by its
// ARN if that is in another region.
func nameFor(in spec.Scope, c spec.Common, kind string) string {
	if c.Scope == in {
		return c.Name
	}
	return c.ARN(kind, c.Name)
}
