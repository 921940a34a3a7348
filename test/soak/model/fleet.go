// Package model is what a soak knows of Howdah without looking: which databases there
// shall be and what they are like, what an operation makes of them, and which operations
// and faults are possible next. A sequence of steps is drawn from it before anything runs,
// so that it can be printed, read, changed by hand, run again and shrunk. Pure.
package model

import (
	"maps"
	"slices"
)

// Kind is the shape of a database.
type Kind string

// The shapes that there are. A replica has one of the first two.
const (
	Single  Kind = "single"
	MultiAZ Kind = "multi-az"
	Three   Kind = "three"  // a Multi-AZ DB cluster: a writer and two standbys
	Aurora  Kind = "aurora" // a cluster whose instances come and go one by one
)

// Database is one database as users asked for it, with all that was asked done.
type Database struct {
	// Serial is its own for ever: names are used again.
	Serial   int
	Name     string
	Kind     Kind
	Source   int // serial of what it follows; 0: nothing
	Class    string
	Storage  int // GiB
	Port     int
	Password int // how often it was changed
	Stopped  bool
	// Instances is how many an Aurora cluster has. Made counts those that it ever had:
	// their names are not used again.
	Instances, Made int
	// Memory and Connections are work_mem in kB and max_connections; 0: as it comes.
	Memory, Connections int
}

// Cluster: it is one at the API.
func (d Database) Cluster() bool { return d.Kind == Three || d.Kind == Aurora }

// Follows: it is a read replica.
func (d Database) Follows() bool { return d.Source != 0 }

// Members is how many copies of its data it has.
func (d Database) Members() int {
	switch d.Kind {
	case MultiAZ:
		return 2
	case Three:
		return 3
	case Aurora:
		return d.Instances
	case Single:
		return 1
	}
	return 1
}

// Standbys is how many of its copies have to be in sync when all hosts are there. A
// replica's standby copies as the replica does: later.
func (d Database) Standbys() int {
	if d.Follows() || d.Stopped {
		return 0
	}
	return d.Members() - 1
}

// Fleet is all that there is.
type Fleet struct {
	Databases map[string]Database // by name
	Serials   int                 // given out so far
	// Network is what the hosts are on; "" while it was not said.
	Network string
	// Limit is how many members there may be; 0: any number.
	Limit int
}

// New is an empty fleet.
func New(limit int) *Fleet { return &Fleet{Databases: map[string]Database{}, Limit: limit} }

// Clone is a copy that shares nothing.
func (f *Fleet) Clone() *Fleet {
	c := *f
	c.Databases = maps.Clone(f.Databases)
	return &c
}

// Names are those of all databases, sorted, for which all of the conditions hold.
func (f *Fleet) Names(are ...func(Database) bool) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.Databases)) {
		if !slices.ContainsFunc(are, func(is func(Database) bool) bool { return !is(f.Databases[name]) }) {
			all = append(all, name)
		}
	}
	return all
}

// Followers are the names of those that follow a database.
func (f *Fleet) Followers(serial int) []string {
	return f.Names(func(d Database) bool { return d.Source == serial })
}

// BySerial finds a database whatever its name is.
func (f *Fleet) BySerial(serial int) (Database, bool) {
	for _, d := range f.Databases {
		if d.Serial == serial {
			return d, true
		}
	}
	return Database{}, false
}

// Root is the database whose data a replica has in the end: the first of its cascade.
func (f *Fleet) Root(d Database) Database {
	for d.Follows() {
		source, ok := f.BySerial(d.Source)
		if !ok {
			return d
		}
		d = source
	}
	return d
}

// room: so many members more are not too many.
func (f *Fleet) room(members int) bool {
	n := members
	for _, d := range f.Databases {
		n += d.Members()
	}
	return f.Limit == 0 || n <= f.Limit
}

func (f *Fleet) add(d Database) {
	f.Serials++
	d.Serial = f.Serials
	f.Databases[d.Name] = d
}
