package model

import (
	"slices"
	"strconv"

	"pgregory.net/rapid"
)

// Snapshot is one that a user made, or the automated backups that were retained of a database that
// was deleted: data that a new database can be made of.
type Snapshot struct {
	Name string
	// Of is the database as it was then.
	Of Database
}

var (
	snapshots = []string{"before", "monday", "sale", "yearly"}
	// days are retention periods. A cluster cannot be without automated backups.
	days        = []string{"0", "1", "7"}
	clusterDays = days[1:]
	// moments are parts of the time for which there are backups, in percent. The last one is the
	// latest restorable time.
	moments = []string{"0", "5", "20", "50", "65", "80", "95", "100"}
)

const (
	// keep says that the automated backups of a database that is deleted are retained.
	keep = "keep"
	drop = "drop"
	// mostRetained is how many databases may have retained backups.
	mostRetained = 2
)

// backups has what is about backups, and what makes databases of them.
var backups = map[string]verb{
	"retention": {
		draw: func(t *rapid.T, f *Fleet) []string {
			return []string{one(t, f, own), evenly(t, days, "days")}
		},
		apply: change(own, func(d *Database, s Step) error {
			if s.Word(1) == strconv.Itoa(d.Days) {
				return errSame
			}
			d.Days, _ = strconv.Atoi(s.Word(1)) // it is one of those
			return among(daysOf(d.Kind), s.Word(1))
		}),
	},
	"snapshot": {
		draw: func(t *rapid.T, f *Fleet) []string {
			return []string{one(t, f, filled), evenly(t, snapshots, "snapshot")}
		},
		apply: func(f *Fleet, s Step) error {
			d, ok := f.Databases[s.Word(0)]
			_, taken := f.Snapshots[s.Word(1)]
			switch {
			case !ok:
				return errNone
			case !filled(f, d) || taken:
				return errState
			}
			f.Snapshots[s.Word(1)] = Snapshot{s.Word(1), d}
			return among(snapshots, s.Word(1))
		},
		touches: func(_ *Fleet, s Step) []string { return []string{s.Word(0), "snapshot " + s.Word(1)} },
	},
	"delete-snapshot": {
		draw: func(t *rapid.T, f *Fleet) []string { return []string{oneSnapshot(t, f.Snapshots)} },
		apply: func(f *Fleet, s Step) error {
			if _, ok := f.Snapshots[s.Word(0)]; !ok {
				return errNone
			}
			delete(f.Snapshots, s.Word(0))
			return nil
		},
		touches: func(_ *Fleet, s Step) []string { return []string{"snapshot " + s.Word(0)} },
	},
	"restore": {
		draw: func(t *rapid.T, f *Fleet) []string { return []string{freeName(t, f), oneSnapshot(t, f.Snapshots)} },
		apply: func(f *Fleet, s Step) error {
			from, ok := f.Snapshots[s.Word(1)]
			if !ok {
				return errNone
			}
			return f.again(s.Word(0), from.Of)
		},
		touches: func(_ *Fleet, s Step) []string { return []string{s.Word(0), "snapshot " + s.Word(1)} },
	},
	// A moment of a database that lives.
	"restore-moment": {
		draw: func(t *rapid.T, f *Fleet) []string {
			return []string{freeName(t, f), one(t, f, backed), evenly(t, moments, "moment")}
		},
		apply: func(f *Fleet, s Step) error {
			d, ok := f.Databases[s.Word(1)]
			switch {
			case !ok:
				return errNone
			case !backed(f, d):
				return errState
			}
			if err := among(moments, s.Word(2)); err != nil {
				return err
			}
			return f.again(s.Word(0), d)
		},
		touches: func(_ *Fleet, s Step) []string { return []string{s.Word(0), s.Word(1)} },
	},
	// A moment of one that was deleted. The word before the last is its serial.
	"restore-retained": {
		draw: func(t *rapid.T, f *Fleet) []string {
			return []string{freeName(t, f), oneSnapshot(t, f.Retained), evenly(t, moments, "moment")}
		},
		apply: func(f *Fleet, s Step) error {
			from, ok := f.Retained[s.Word(1)]
			if !ok {
				return errNone
			}
			if err := among(moments, s.Word(2)); err != nil {
				return err
			}
			return f.again(s.Word(0), from.Of)
		},
		touches: func(_ *Fleet, s Step) []string { return []string{s.Word(0), "retained " + s.Word(1)} },
	},
	"delete-retained": {
		draw: func(t *rapid.T, f *Fleet) []string { return []string{oneSnapshot(t, f.Retained)} },
		apply: func(f *Fleet, s Step) error {
			if _, ok := f.Retained[s.Word(0)]; !ok {
				return errNone
			}
			delete(f.Retained, s.Word(0))
			return nil
		},
		touches: func(_ *Fleet, s Step) []string { return []string{"retained " + s.Word(0)} },
	},
	"drill": named(backed, nil),
	// Many moments are restored without the home.
	"moments": named(backed, nil),
}

func daysOf(k Kind) []string {
	if (Database{Kind: k}).Cluster() {
		return clusterDays
	}
	return days
}

// backed reports whether moments of it can be restored.
func backed(f *Fleet, d Database) bool { return filled(f, d) && d.Days > 0 }

// filled reports whether it has data of its own that can be backed up.
func filled(f *Fleet, d Database) bool { return own(f, d) && d.Members() > 0 }

// again makes a database of the data of another one.
func (f *Fleet) again(name string, of Database) error {
	d := Database{
		Name: name, Kind: of.Kind, Class: of.Class, Storage: of.Storage, Port: of.Port, Password: of.Password, Days: 1,
		From: of.Serial,
	}
	if d.Kind == Aurora {
		d.Class, d.Instances, d.Made = firstClass, 1, 1
	}
	return f.make(d)
}

// retain notes the automated backups of a database that goes.
func (f *Fleet) retain(d Database) error {
	if d.Days == 0 || d.Follows() || len(f.Retained) >= mostRetained {
		return errState
	}
	name := strconv.Itoa(d.Serial)
	f.Retained[name] = Snapshot{name, d}
	return nil
}

// oneSnapshot draws one, or "" if there is none.
func oneSnapshot(t *rapid.T, all map[string]Snapshot) string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return evenly(t, names, "snapshot")
}
