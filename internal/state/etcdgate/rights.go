package etcdgate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// caller is somebody who asks, with what they may do.
type caller interface {
	// may returns nil, errScope, or errUnknown if that cannot be found out now.
	may(ctx context.Context, n need) error
	// account names the account of the caller's leases and budget.
	account() string
	// String names the caller in the log.
	String() string
}

// rights are what one member may do to keys: to Patroni's keys of its own database, and to those
// keys of package gate that are about its own promotion.
type rights struct {
	scope, name string // the member's database, and its name there
}

// rightsOf returns the rights of a member by its id. It returns false if the id is not one of a
// member.
func rightsOf(id string) (rights, bool) {
	scope, name, ok := strings.Cut(id, ".")
	return rights{scope, name}, ok && scope != "" && name != "" && !strings.ContainsAny(id, "/\x00")
}

// own returns Patroni's part.
func (r rights) own() area { return area(patroni.Namespace + r.scope + "/") }

// area is all keys that begin with it. It ends in a character that is not the last one of all.
type area string

// end returns the first key after those of the area.
func (a area) end() string { return string(a[:len(a)-1]) + string(a[len(a)-1]+1) }

// holds reports whether all keys of the range are of the area. A range without an end is one key.
// etcd's end "\x00" means all keys after the first, and is larger than no key.
func (a area) holds(k keys) bool {
	key, end := string(k.Key), string(k.RangeEnd)
	return strings.HasPrefix(key, string(a)) && (end == "" || end > key && end <= a.end())
}

// files are the keys of its own database that Patroni writes (patroni/dcs/__init__.py). A member
// that could write others might fill etcd, which belongs to all.
var files = []string{"config", "failover", "failsafe", "history", "initialize", "leader", "status", "sync", "optime/leader"}

func (r rights) account() string { return r.scope }

func (r rights) String() string { return r.scope + "." + r.name }

func (r rights) may(_ context.Context, n need) error {
	if !r.allows(n) {
		return fmt.Errorf("%w: %.100q", errScope, n.Key)
	}
	return nil
}

// allows reports whether the member may do what n needs.
func (r rights) allows(n need) bool {
	one := len(n.RangeEnd) == 0
	switch n.deed {
	case reads:
		return r.own().holds(n.keys) || r.reads(n.keys)
	case keeps:
		return r.own().holds(n.keys)
	case writes:
		return one && r.writes(string(n.Key))
	default: // deletes
		return r.own().holds(n.keys) || one && (r.writes(string(n.Key)) || string(n.Key) == state.Death(r.scope, r.name))
	}
}

// reads reports whether the keys are the control plane's word on the database, or on any member
// that led it.
func (r rights) reads(k keys) bool {
	one := []string{
		state.Passed(r.scope), state.Timeline(r.scope), state.Plea(r.scope), state.Lead(r.scope), state.Layout(r.scope), state.Hold(r.scope), state.Restored(),
	}
	several := []string{state.FencePrefix(r.scope), state.Cuts(r.scope), state.DeathPrefix(r.scope)}
	return len(k.RangeEnd) == 0 && slices.Contains(one, string(k.Key)) ||
		slices.ContainsFunc(several, func(prefix string) bool { return area(prefix).holds(k) })
}

func (r rights) writes(key string) bool {
	if key == state.Passed(r.scope) || key == state.Timeline(r.scope) || key == state.Plea(r.scope) {
		return true
	}
	file, ok := strings.CutPrefix(key, string(r.own()))
	return ok && (slices.Contains(files, file) || file == "members/"+r.name || file == "members/"+patroni.OwnName(r.scope, r.name))
}
