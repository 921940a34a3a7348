// Package model is what a soak knows of Howdah without looking: which databases there are to be and
// what they are like, what an operation makes of them, and which operations and faults are possible
// next. A sequence of steps is drawn from it before anything runs. So it can be printed, read,
// changed by hand, run again and shrunk. The package is pure.
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

// Database is one database as users asked for it, with everything done that was asked.
type Database struct {
	// Serial is never used again. Names are.
	Serial   int
	Name     string
	Kind     Kind
	Source   int // serial of what it follows; 0: nothing
	Class    string
	Storage  int // GiB
	Port     int
	Password int // how often it was changed
	Stopped  bool
	// Instances is how many instances an Aurora cluster has. Made counts those that it ever had,
	// because their names are not used again.
	Instances, Made int
	// Memory and Connections are work_mem in kB and max_connections. 0 is the default.
	Memory, Connections int
	// Days is the retention period of its automated backups; 0: it has none.
	Days int
	// From is the serial of the database whose data it was made of; 0: it began empty.
	From int
}

// Cluster reports whether it is a cluster at the API.
func (d Database) Cluster() bool { return d.Kind == Three || d.Kind == Aurora }

// Follows reports whether it is a read replica.
func (d Database) Follows() bool { return d.Source != 0 }

// Members returns how many copies of its data it has.
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

// Standbys returns how many of its copies have to be in sync when all hosts are there. A replica's
// standby copies as the replica does: later.
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
	Snapshots map[string]Snapshot // by name
	Retained  map[string]Snapshot // automated backups of what was deleted, by serial
	// Network is what the hosts are on. It is "" until a step said so.
	Network string
	// Limit is how many members there may be. 0 is any number.
	Limit int
}

// New returns an empty fleet.
func New(limit int) *Fleet {
	return &Fleet{Databases: map[string]Database{}, Snapshots: map[string]Snapshot{}, Retained: map[string]Snapshot{}, Limit: limit}
}

// Clone returns a copy that shares nothing.
func (f *Fleet) Clone() *Fleet {
	c := *f
	c.Databases, c.Snapshots, c.Retained = maps.Clone(f.Databases), maps.Clone(f.Snapshots), maps.Clone(f.Retained)
	return &c
}

// Names returns the names of all databases for which all conditions hold, sorted.
func (f *Fleet) Names(are ...func(Database) bool) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.Databases)) {
		if !slices.ContainsFunc(are, func(is func(Database) bool) bool { return !is(f.Databases[name]) }) {
			all = append(all, name)
		}
	}
	return all
}

// Followers returns the names of the databases that follow a database.
func (f *Fleet) Followers(serial int) []string {
	return f.Names(func(d Database) bool { return d.Source == serial })
}

// BySerial finds a database by its serial, whatever its name is.
func (f *Fleet) BySerial(serial int) (Database, bool) {
	for _, d := range f.Databases {
		if d.Serial == serial {
			return d, true
		}
	}
	return Database{}, false
}

// Root returns the database whose data a replica has in the end: the first of its cascade.
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

// room reports whether this many more members are not too many.
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
