package server

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

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
	instances []state.Record[*spec.Instance] // by region and name; shared, as the next three
	instance  map[string]*spec.Instance      // by resource id
	members   map[string][]state.Record[*spec.Instance]
	followers map[string][]state.Record[*spec.Instance]
	clusters  []state.Record[spec.Cluster]
	cluster   map[string]spec.Cluster
	groups    plan.Groups
	checked   map[string]state.Op // by key of a group that was checked: it is as it was then
}

// looks are the newest looks at accounts. One is good until users change anything.
type looks struct {
	mu        sync.Mutex
	seen      int64            // guarded by mu: as of when they are, see state.Cache.Since
	ofAccount map[string]*look // guarded by mu

	hostChanges int64    // guarded by mu: as of when zones are
	zones       []string // guarded by mu: those that the home has hosts in
}

func (s *Server) look(account string) *look {
	s.looks.mu.Lock()
	defer s.looks.mu.Unlock()
	s.looks.follow(s.Cache)
	l := s.looks.ofAccount[account]
	if l == nil {
		l = s.newLook(account)
		s.looks.ofAccount[account] = l
	}
	own := *l
	own.checked = map[string]state.Op{} // which a call notes down
	return &own
}

// follow catches up with what users changed: a look that nothing concerns stays.
func (all *looks) follow(cache *state.Cache) {
	keys, now, complete := cache.Since(all.seen, state.SpecRoot)
	all.seen = now
	if !complete || all.ofAccount == nil {
		all.ofAccount = map[string]*look{}
	}
	for account, l := range all.ofAccount {
		if next, ok := l.after(account, keys); ok {
			all.ofAccount[account] = next
		} else {
			delete(all.ofAccount, account)
		}
	}
}

// fewKeys is up to how many changes it is cheaper to look for each of them than to look
// at all.
const fewKeys = 32

// after brings a look up to date with keys that changed. ok is false if the account has to be
// looked at from scratch. Most changes concern one instance, and nothing else.
func (l *look) after(account string, keys []string) (next *look, ok bool) {
	var instances []string
	for _, key := range keys {
		switch {
		case strings.HasPrefix(key, state.InstanceRoot+account+"/"):
			instances = append(instances, key)
		case strings.HasPrefix(key, state.ClusterRoot+account+"/"), strings.HasPrefix(key, state.ParameterGroupRoot):
			return nil, false
		}
	}
	switch {
	case len(instances) == 0:
		return l, true
	case len(instances) > fewKeys:
		return nil, false
	}
	own := *l // calls may still use the other one
	own.instances, own.instance = slices.Clone(l.instances), maps.Clone(l.instance)
	related := func(i *spec.Instance) bool { return i.Cluster != "" || i.Follows() }
	for _, key := range instances {
		at, found := slices.BinarySearchFunc(own.instances, key, byRecordKey)
		r, err := state.View[spec.Instance](l.Cache, key)
		switch {
		case found && related(own.instances[at].Value), err == nil && related(r.Value), err != nil && !errors.Is(err, state.ErrNotFound):
			return nil, false
		case found:
			// One that was renamed is known by its new record already.
			if old := own.instances[at].Value; own.instance[old.ResourceID] == old {
				delete(own.instance, old.ResourceID)
			}
			own.instances = slices.Delete(own.instances, at, at+1)
		}
		if err == nil {
			own.instances = slices.Insert(own.instances, at, r)
			own.instance[r.Value.ResourceID] = r.Value
		}
	}
	return &own, true
}

func (s *Server) newLook(account string) *look {
	l := &look{
		Server:    s,
		instances: state.ViewAll[spec.Instance](s.Cache, state.InstanceRoot+account+"/"),
		clusters:  state.LoadAll[spec.Cluster](s.Cache, state.ClusterRoot+account+"/"),
		cluster:   map[string]spec.Cluster{},
		members:   map[string][]state.Record[*spec.Instance]{},
		followers: map[string][]state.Record[*spec.Instance]{},
	}
	l.groups, _ = view.Groups(s.Cache)
	l.instance = make(map[string]*spec.Instance, len(l.instances))
	for _, r := range l.instances {
		i := r.Value
		l.instance[i.ResourceID] = i
		if i.Cluster != "" {
			l.members[i.Cluster] = append(l.members[i.Cluster], r)
		}
		if i.Follows() && !i.Deleting {
			l.followers[i.Source] = append(l.followers[i.Source], r)
		}
	}
	for _, r := range l.clusters {
		l.cluster[r.Value.ResourceID] = r.Value
	}
	return l
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
	prefix := state.Instance(scope.Account, scope.Region, "")
	first, _ := slices.BinarySearchFunc(l.instances, prefix, byRecordKey)
	end, _ := slices.BinarySearchFunc(l.instances, prefix+"\xff", byRecordKey) // behind every name
	return l.instances[first:end]
}

func byRecordKey(r state.Record[*spec.Instance], key string) int { return strings.Compare(r.Key, key) }

// findSource finds an instance of any region, by ARN, or of the caller's by name.
func (l *look) findSource(scope spec.Scope, identifier string) (state.Record[spec.Instance], error) {
	in, name := locate(scope, identifier, "db")
	key := state.Instance(in.Account, in.Region, name)
	at, found := slices.BinarySearchFunc(l.instances, key, byRecordKey)
	if !found {
		return state.Record[spec.Instance]{}, noInstance(name)
	}
	return state.Copy(l.instances[at]), nil
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
