package view

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Made is what users made, of all accounts, as of one moment. All who ask share it: nothing
// in it may be altered.
type Made struct {
	Groups plan.Groups // parameter groups

	accounts map[string]*Account
	marks    string // tells one set of parameter groups from another
}

// Account is what users of one account made, as of one moment.
type Account struct {
	*Related
	Instances []state.Record[*spec.Instance] // by region and name
	Instance  map[string]*spec.Instance      // by resource id
	// Shown are the instances that users see: all, but for those that an operation made for its own
	// ends.
	Shown []state.Record[*spec.Instance]
}

// Related is what is known of databases of several records. It stays the same one while only
// instances change that have to do with no other.
type Related struct {
	Members   map[string][]state.Record[*spec.Instance] // of clusters, by resource id
	Followers map[string][]state.Record[*spec.Instance] // of what they follow, by resource id
	Clusters  []state.Record[spec.Cluster]              // by region and name
	Cluster   map[string]spec.Cluster                   // by resource id
	Custom    map[string][]state.Record[spec.Endpoint]  // custom endpoints, by resource id of the cluster
}

// nothing is what an account has in which nothing was made.
var nothing = &Account{Related: &Related{}}

// Of is what users of an account made. It is never nil.
func (m *Made) Of(account string) *Account {
	if a, ok := m.accounts[account]; ok {
		return a
	}
	return nothing
}

// Records knows what users made, and follows what they change: what a change does not concern
// stays. It may be used by several goroutines; its zero value with a Cache is ready.
type Records struct {
	Cache *state.Cache

	mu   sync.Mutex
	seen int64 // guarded by mu: see state.Cache.Since
	made *Made // guarded by mu
}

// Made is what users made, as of now.
func (r *Records) Made() *Made {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys, now, complete := r.Cache.Since(r.seen, state.SpecRoot)
	r.seen = now
	switch {
	case !complete || r.made == nil:
		r.made = lookAtAll(r.Cache)
	case len(keys) > 0:
		r.made = r.made.after(r.Cache, keys)
	}
	return r.made
}

// accountRoots are where accounts have what they made.
var accountRoots = []string{state.InstanceRoot, state.ClusterRoot, state.EndpointRoot}

// accountOf is the account whose record has this key; "": none has.
func accountOf(key string) string {
	for _, root := range accountRoots {
		if rest, ok := strings.CutPrefix(key, root); ok {
			account, _, _ := strings.Cut(rest, "/")
			return account
		}
	}
	return ""
}

// lookAtAll takes nothing over from before.
func lookAtAll(cache *state.Cache) *Made {
	m := &Made{accounts: map[string]*Account{}}
	m.findGroups(cache)
	for _, root := range accountRoots {
		for _, key := range cache.Keys(root) {
			if name := accountOf(key); m.accounts[name] == nil {
				m.accounts[name] = lookAtAccount(cache, name)
			}
		}
	}
	return m
}

func (m *Made) findGroups(cache *state.Cache) {
	records := state.LoadAll[spec.ParameterGroup](cache, state.ParameterGroupRoot)
	m.Groups, m.marks = plan.Groups{}, revisions(records)
	for _, r := range records {
		m.Groups.Add(r.Value)
	}
}

// after is what users made once records with these keys have changed.
func (m *Made) after(cache *state.Cache, keys []string) *Made {
	next := *m
	next.accounts = maps.Clone(m.accounts)
	concerned := map[string][]string{}
	groups := false
	for _, key := range keys {
		groups = groups || strings.HasPrefix(key, state.ParameterGroupRoot)
		if account := accountOf(key); account != "" {
			concerned[account] = append(concerned[account], key)
		}
	}
	if groups {
		next.findGroups(cache)
	}
	for name, keys := range concerned {
		a, ok := m.Of(name).after(cache, keys)
		if !ok {
			a = lookAtAccount(cache, name)
		}
		next.accounts[name] = a
		if len(a.Instances)+len(a.Clusters)+len(a.Custom) == 0 {
			delete(next.accounts, name)
		}
	}
	return &next
}

func lookAtAccount(cache *state.Cache, name string) *Account {
	a := &Account{
		Related: &Related{
			Members: map[string][]state.Record[*spec.Instance]{}, Followers: map[string][]state.Record[*spec.Instance]{},
			Clusters: state.LoadAll[spec.Cluster](cache, state.ClusterRoot+name+"/"), Cluster: map[string]spec.Cluster{},
			Custom: map[string][]state.Record[spec.Endpoint]{},
		},
		Instances: state.ViewAll[spec.Instance](cache, state.InstanceRoot+name+"/"),
	}
	a.Instance = make(map[string]*spec.Instance, len(a.Instances))
	for _, r := range a.Instances {
		i := r.Value
		a.Instance[i.ResourceID] = i
		if i.Cluster != "" {
			a.Members[i.Cluster] = append(a.Members[i.Cluster], r)
		}
		if i.Follows() && !i.Deleting {
			a.Followers[i.Source] = append(a.Followers[i.Source], r)
		}
	}
	a.Shown = shown(a.Instances)
	for _, r := range a.Clusters {
		a.Cluster[r.Value.ResourceID] = r.Value
	}
	for _, e := range state.LoadAll[spec.Endpoint](cache, state.EndpointRoot+name+"/") {
		a.Custom[e.Value.Cluster] = append(a.Custom[e.Value.Cluster], e)
	}
	return a
}

// fewKeys is up to how many changes it is cheaper to look for each of them than to look
// at all.
const fewKeys = 32

// after brings an account up to date with keys that changed. ok is false if it has to be
// looked at from scratch. Most changes concern one instance, and nothing else.
func (a *Account) after(cache *state.Cache, keys []string) (next *Account, ok bool) {
	slices.Sort(keys)
	keys = slices.Compact(keys)
	alone := func(key string) bool { return strings.HasPrefix(key, state.InstanceRoot) }
	if a == nothing || len(keys) > fewKeys || !all(keys, alone) {
		return nil, false
	}
	own := Account{Related: a.Related, Instances: slices.Clone(a.Instances), Instance: maps.Clone(a.Instance)}
	related := func(i *spec.Instance) bool { return i.Cluster != "" || i.Follows() }
	for _, key := range keys {
		at, found := own.place(key)
		r, err := state.View[spec.Instance](cache, key)
		switch {
		case found && related(own.Instances[at].Value), err == nil && related(r.Value), err != nil && !errors.Is(err, state.ErrNotFound):
			return nil, false
		case found:
			// One that was renamed is known by its new record already.
			if old := own.Instances[at].Value; own.Instance[old.ResourceID] == old {
				delete(own.Instance, old.ResourceID)
			}
			own.Instances = slices.Delete(own.Instances, at, at+1)
		}
		if err == nil {
			own.Instances = slices.Insert(own.Instances, at, r)
			own.Instance[r.Value.ResourceID] = r.Value
		}
	}
	own.Shown = shown(own.Instances)
	return &own, true
}

// shown are the instances that users see. It is the same list if they see all.
func shown(all []state.Record[*spec.Instance]) []state.Record[*spec.Instance] {
	hidden := func(r state.Record[*spec.Instance]) bool { return r.Value.Hidden() }
	if !slices.ContainsFunc(all, hidden) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), hidden)
}

func all[T any](list []T, such func(T) bool) bool {
	return !slices.ContainsFunc(list, func(t T) bool { return !such(t) })
}

// place is where an instance with this key is, or would be.
func (a *Account) place(key string) (at int, found bool) { return placeIn(a.Instances, key) }

func placeIn(all []state.Record[*spec.Instance], key string) (at int, found bool) {
	return slices.BinarySearchFunc(all, key, func(r state.Record[*spec.Instance], key string) int { return strings.Compare(r.Key, key) })
}

// Named is the instance of that name in a region, if users see it.
func (a *Account) Named(in spec.Scope, name string) (state.Record[*spec.Instance], bool) {
	at, found := placeIn(a.Shown, state.Instance(in.Account, in.Region, name))
	if !found {
		return state.Record[*spec.Instance]{}, false
	}
	return a.Shown[at], true
}

// In are the instances of a region that users see, by name.
func (a *Account) In(scope spec.Scope) []state.Record[*spec.Instance] {
	prefix := state.Instance(scope.Account, scope.Region, "")
	first, _ := placeIn(a.Shown, prefix)
	end, _ := placeIn(a.Shown, prefix+"\xff") // behind every name
	return a.Shown[first:end]
}
