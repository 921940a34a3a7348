package model

import (
	"slices"
	"strconv"

	"pgregory.net/rapid"
)

// Names are the names that databases have. A name is free again after a deletion.
var Names = []string{"audit", "ledger", "orders", "report", "shop", "stock"}

var (
	kinds = []string{string(Single), string(MultiAZ), string(Three), string(Aurora)}
	// instances has the kinds that are no clusters.
	instances = kinds[:2]
	// drawn has the kinds of which databases are made. Those with standbys have more to lose.
	drawn = []string{string(MultiAZ), string(MultiAZ), string(Three), string(Three), string(Aurora), string(Single)}
)

const (
	firstClass   = "db.t3.micro"
	firstStorage = 20
	firstPort    = 5432
	// auroraFirst is how many instances a cluster begins with. auroraMost is how many it grows to.
	auroraFirst, auroraMost = 2, 3
)

// existence has what makes databases, and ends them.
var existence = map[string]verb{
	"create": {
		draw: func(t *rapid.T, f *Fleet) []string {
			kind := evenly(t, drawn, "kind")
			return []string{freeName(t, f), kind, evenly(t, daysOf(Kind(kind)), "days")}
		},
		apply: create,
	},
	"replica": {
		draw: func(t *rapid.T, f *Fleet) []string {
			source := one(t, f, runs)
			return []string{freeName(t, f), evenly(t, instances, "kind"), source}
		},
		apply:   replica,
		touches: func(_ *Fleet, s Step) []string { return []string{s.Word(0), s.Word(2)} },
	},
	"promote": {draw: named(replicated, nil).draw, apply: promote},
	"delete": {
		draw: func(t *rapid.T, f *Fleet) []string {
			return []string{one(t, f, runs), evenly(t, []string{keep, drop, drop}, "backups")}
		},
		apply: remove,
		touches: func(f *Fleet, s Step) []string {
			return append([]string{s.Word(0)}, f.Followers(f.Databases[s.Word(0)].Serial)...)
		},
	},
	"rename": {
		draw: func(t *rapid.T, f *Fleet) []string {
			return []string{one(t, f, runs), freeName(t, f)}
		},
		apply:   rename,
		touches: func(_ *Fleet, s Step) []string { return []string{s.Word(0), s.Word(1)} },
	},
}

func replicated(_ *Fleet, d Database) bool { return d.Follows() && !d.Stopped }

func promote(f *Fleet, s Step) error {
	d, ok := f.Databases[s.Word(0)]
	if !ok || !replicated(f, d) {
		return errState
	}
	f.promote(d)
	return nil
}

func remove(f *Fleet, s Step) error {
	d, ok := f.Databases[s.Word(0)]
	switch {
	case !ok:
		return errNone
	case d.Stopped:
		return errState
	}
	if s.Word(1) == keep {
		if err := f.retain(d); err != nil {
			return err
		}
	}
	// From then on whatever follows it is on its own.
	for _, name := range f.Followers(d.Serial) {
		f.promote(f.Databases[name])
	}
	delete(f.Databases, d.Name)
	return nil
}

// promote makes a replica independent. The master user's password stays as it is.
func (f *Fleet) promote(d Database) {
	d.Password, d.Source = f.Root(d).Password, 0
	f.Databases[d.Name] = d
}

// freeName draws a name that no database has, or "" if all are taken.
func freeName(t *rapid.T, f *Fleet) string {
	free := slices.DeleteFunc(slices.Clone(Names), func(name string) bool { _, taken := f.Databases[name]; return taken })
	if len(free) == 0 {
		return ""
	}
	return evenly(t, free, "name")
}

func create(f *Fleet, s Step) error {
	d := Database{Name: s.Word(0), Kind: Kind(s.Word(1)), Class: firstClass, Storage: firstStorage, Port: firstPort}
	if d.Kind == Aurora {
		d.Instances, d.Made = auroraFirst, auroraFirst
	}
	if err := among(kinds, s.Word(1)); err != nil {
		return err
	}
	if d.Cluster() {
		d.Days = 1 // unless something else is said
	}
	if text := s.Word(2); text != "" {
		if err := among(daysOf(d.Kind), text); err != nil {
			return err
		}
		d.Days, _ = strconv.Atoi(text) // it is one of those
	}
	return f.make(d)
}

func replica(f *Fleet, s Step) error {
	source, ok := f.Databases[s.Word(2)]
	switch {
	case !ok:
		return errNone
	case source.Stopped:
		return errState
	}
	if err := among(instances, s.Word(1)); err != nil {
		return err
	}
	d := Database{Name: s.Word(0), Kind: Kind(s.Word(1)), Source: source.Serial, Class: source.Class, Storage: source.Storage, Port: source.Port}
	return f.make(d)
}

func (f *Fleet) make(d Database) error {
	if _, taken := f.Databases[d.Name]; taken || d.Name == "" || !f.room(d.Members()) {
		return errRoom
	}
	f.add(d)
	return nil
}

func rename(f *Fleet, s Step) error {
	d, ok := f.Databases[s.Word(0)]
	if _, taken := f.Databases[s.Word(1)]; !ok || taken || d.Stopped || s.Word(1) == "" {
		return errState
	}
	delete(f.Databases, d.Name)
	d.Name = s.Word(1)
	f.Databases[d.Name] = d
	return nil
}

// counts returns the numbers of instances that an Aurora cluster may be brought to.
func counts() []string {
	var all []string
	for n := 1; n <= auroraMost; n++ {
		all = append(all, strconv.Itoa(n))
	}
	return all
}
