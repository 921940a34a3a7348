package view

import (
	"slices"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// Leader is the member of a database that has Patroni's leader key; "": none has.
func Leader(cache *state.Cache, database string) string {
	value, _, _ := cache.Raw(patroni.LeaderKey(database))
	return patroni.MemberName(string(value))
}

// Sync is what Patroni says of a database's standbys in sync. One that cannot be read names
// none.
func Sync(cache *state.Cache, database string) patroni.Sync {
	value, _, _ := cache.Raw(patroni.SyncKey(database))
	s, err := patroni.ParseSync(value)
	if err != nil {
		return patroni.Sync{}
	}
	return s
}

// Basis is what a decision about a database goes by, as far as its caller read it. All else is
// read from the state when it is asked for.
type Basis struct {
	*Database
	Wanted *Wanted
	Layout plan.Layout
	Hosts  []plan.Host
	HostAt map[string]int // places in Hosts, by name; nil: they are searched for
	// Assigned is what hosts were told last of its members, and Reports what these say of
	// themselves, by member id.
	Assigned map[string]state.Record[member.Assignment]
	Reports  map[string]member.Report
	// Since: edges count that said after this revision that they run.
	Since int64
}

// Basis is the one that the state as it is now says.
func (w *Wanted) Basis(d *Database, layout plan.Layout, hosts []plan.Host) Basis {
	return Basis{
		Database: d, Wanted: w, Layout: layout, Hosts: hosts,
		Assigned: Assigned(w.cache, d.Want.ID, layout), Reports: Reports(w.cache, d.Want.ID, layout),
	}
}

// Reports are what the members of a database say of themselves, by id.
func Reports(cache *state.Cache, database string, layout plan.Layout) map[string]member.Report {
	all := map[string]member.Report{}
	for _, m := range layout.Members {
		id := member.ID(database, m.Name)
		if report, err := state.View[member.Report](cache, state.Report(m.Host, id)); err == nil {
			all[id] = *report.Value
		}
	}
	return all
}

// Assigned is what hosts were told last of the members of a database, by id.
func Assigned(cache *state.Cache, database string, layout plan.Layout) map[string]state.Record[member.Assignment] {
	all := map[string]state.Record[member.Assignment]{}
	for _, m := range layout.Members {
		id := member.ID(database, m.Name)
		if a, ok := LastAssigned(cache, m.Host, id); ok {
			all[id] = a
		}
	}
	return all
}

// LastAssigned is what a host was told last of a member, if it was told anything.
// Where the record is of no use, because it is gone, does not decode or is older
// than what the agent has, it is empty, so that it is written again, with a
// generation that the agent takes: above what it reports, or above the record's
// revision, which no generation ever exceeds.
func LastAssigned(cache *state.Cache, host, id string) (last state.Record[member.Assignment], ok bool) {
	key := state.Assign(host, id)
	last, err := state.Load[member.Assignment](cache, key)
	var known int64
	if report, err := state.View[member.Report](cache, state.Report(host, id)); err == nil {
		known = report.Value.Generation
	}
	if err == nil && known <= last.Value.Generation {
		return last, true
	}
	_, revision, found := cache.Raw(key)
	last = state.Record[member.Assignment]{Key: key, Revision: revision}
	last.Value.Generation = max(revision, known)
	return last, found || known > 0
}

// Input is everything that the planner decides a database's next step by: what is decided
// and what is shown of decisions come from here alone.
func (b Basis) Input(now time.Time, policy plan.Policy) plan.Input {
	cache, id := b.Wanted.cache, b.Want.ID
	in := plan.Input{
		Now: now, Policy: policy, Want: b.Want, Layout: b.Layout, Hosts: b.Hosts, HostAt: b.HostAt, Reports: b.Reports,
		Leader: Leader(cache, id), Sync: Sync(cache, id), Unborn: unborn(cache, id), Born: born(cache, id),
		Applied: map[string]int64{}, Assigned: map[string]int64{}, Results: map[string]member.Result{},
		Making: map[string]bool{}, Positions: map[string]int64{}, Behind: map[string]bool{}, PendingRestart: map[string]bool{}, Unloaded: map[string]bool{}, Growing: map[string]bool{}, Shrinking: map[string]bool{},
		Ways: Ways(cache, b.Routes(b.Layout), b.Since), OwnNames: b.Wanted.parts.ownNames, Keys: b.keys(),
		Source: Source(cache, b.Want, b.Layout),
	}
	in.Backup = b.backup()
	in.BackingUp = b.Want.Restore != nil && in.Backup == nil && backingUp(cache, id)
	_, config, _ := cache.Raw(patroni.ConfigKey(id))
	for _, m := range b.Layout.Members {
		b.addMember(&in, m, config)
	}
	for _, result := range state.ViewAll[member.Result](cache, state.ResultRoot+id+"/") {
		in.Results[result.Value.ID] = *result.Value
	}
	return in
}

// backup is the one that a new standby may begin with, or nil.
func (b Basis) backup() *member.Copy {
	if b.Want.Archive == nil {
		return nil
	}
	var all []backup.Backup
	for _, r := range state.ViewAll[backup.Backup](b.Wanted.cache, state.BackupPrefix(b.Want.ID)) {
		if slices.Contains(b.Want.Archive.Repositories, r.Value.Repository) {
			all = append(all, *r.Value)
		}
	}
	newest, ok := backup.First(all, b.Want.Major)
	if !ok {
		return nil
	}
	return &member.Copy{Repository: newest.Repository, Label: newest.Label}
}

// backingUp: a backup of a database is being made.
func backingUp(cache *state.Cache, database string) bool {
	return slices.ContainsFunc(operations(cache), func(o *operation.Record) bool {
		return o.Kind == backup.Take.Name && o.About.Database == database && !o.State.Ended()
	})
}

// addMember adds what is known of one member; config is the revision of what all share.
func (b Basis) addMember(in *plan.Input, m plan.Placed, config int64) {
	id := member.ID(b.Want.ID, m.Name)
	if a, ok := b.Assigned[id]; ok {
		in.Assigned[id] = a.Value.Generation
		if b.outstanding(m) && !b.upToDate(m, a.Value) {
			in.Assigned[id]++ // it is about to be told
		}
	}
	if s, ok := patroni.FindMember(b.Wanted.cache.Raw, b.Want.ID, m.Name); ok {
		in.Behind[id] = s.Shared() > 0 && s.Shared() < config
		in.Applied[id], in.Positions[id], in.Making[id] = s.Generation(), s.Location, s.Making()
		// What a primary said before it was restarted as a standby holds no more.
		in.PendingRestart[id] = s.Waits() && (m.Name == in.Leader || s.Role == "replica")
		in.Unloaded[id] = s.Unloaded() && b.Want.Warm && (m.Name == in.Leader || s.Role == "replica")
		in.Growing[id] = in.PendingRestart[id] && plan.Grows(s.Differences)
		in.Shrinking[id] = in.PendingRestart[id] && plan.Shrinks(s.Differences)
	}
}

// outstanding: a restart of a member was asked for that must find it with its
// newest settings.
func (b Basis) outstanding(m plan.Placed) bool {
	if b.Want.Reboot > b.Layout.Rebooted {
		return true
	}
	for _, s := range b.Want.Seats {
		if s.Key == m.Seat && (s.Reboot > m.Rebooted || s.Restart > m.Restarted) {
			return true
		}
	}
	return false
}

// upToDate: a member's host was told what is wanted now.
func (b Basis) upToDate(m plan.Placed, last member.Assignment) bool {
	want := plan.Assign(b.Want, b.Layout, m, b.host(m.Host).Memory)
	want.Generation = last.Generation
	return want.Same(last.Unsealed())
}

// host is an empty one where it is not known.
func (b Basis) host(name string) plan.Host {
	if at, ok := b.HostAt[name]; ok {
		return b.Hosts[at]
	}
	if b.HostAt == nil {
		for _, h := range b.Hosts {
			if h.Name == name {
				return h
			}
		}
	}
	return plan.Host{}
}

// unborn: someone began to bootstrap, and no data have been made yet that count.
func unborn(cache *state.Cache, database string) bool {
	value, _, ok := cache.Raw(patroni.InitializeKey(database))
	return ok && len(value) == 0
}

// born: Patroni knows the system identifier of data that were made.
func born(cache *state.Cache, database string) bool {
	value, _, ok := cache.Raw(patroni.InitializeKey(database))
	return ok && len(value) > 0
}
