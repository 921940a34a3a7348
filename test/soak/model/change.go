package model

var (
	classes  = []string{"db.t3.micro", "db.t3.small", "db.t3.medium"}
	ports    = []string{"5432", "5433", "6000"}
	steps    = []string{"10", "25"} // GiB that a storage grows by
	memories = []string{"2048", "3072", "5120"}
	limits   = []string{"60", "75", "120"}
	zones    = []string{"a", "b", "c"}
)

// changes has modifications, each with ApplyImmediately.
var changes = map[string]verb{
	"class": with(runs, classes, func(d *Database, s Step) error {
		if s.Word(1) == d.Class {
			return errSame
		}
		d.Class = s.Word(1)
		return among(classes, d.Class)
	}),
	// The storage of an Aurora cluster grows by itself.
	"storage": with(func(_ *Fleet, d Database) bool { return !d.Stopped && d.Kind != Aurora }, steps, func(d *Database, s Step) error {
		var more int
		err := number(&more, s.Word(1))
		d.Storage += more
		return err
	}),
	"port": with(own, ports, func(d *Database, s Step) error { return other(&d.Port, s.Word(1)) }),
	"password": named(own, func(d *Database, _ Step) error {
		d.Password++
		return nil
	}),
	// work_mem changes at once, max_connections with the next reboot.
	"memory":      with(func(_ *Fleet, d Database) bool { return !d.Stopped && d.Kind != Aurora && !d.Follows() }, memories, func(d *Database, s Step) error { return other(&d.Memory, s.Word(1)) }),
	"connections": with(func(f *Fleet, d Database) bool { return !d.Stopped && !d.Cluster() && apart(f, d) }, limits, func(d *Database, s Step) error { return other(&d.Connections, s.Word(1)) }),
	// For a moment its security group lets nobody in.
	"shut": named(runs, nil),
	"convert": with(func(_ *Fleet, d Database) bool { return !d.Stopped && !d.Cluster() }, instances, func(d *Database, s Step) error {
		if s.Word(1) == string(d.Kind) {
			return errSame
		}
		d.Kind = Kind(s.Word(1))
		return among(instances, s.Word(1))
	}),
	"scale": with(func(_ *Fleet, d Database) bool { return !d.Stopped && d.Kind == Aurora }, counts(), func(d *Database, s Step) error {
		var to int
		if err := number(&to, s.Word(1)); err != nil {
			return err
		}
		if to == d.Instances {
			return errSame
		}
		d.Made += max(to-d.Instances, 0)
		d.Instances = to
		return among(counts(), s.Word(1))
	}),
}

// restarts has what makes databases, or what runs them, begin again.
var restarts = map[string]verb{
	"reboot": named(runs, nil),
	// A standby takes over. A replica has nothing to lose, so this may be done to it, too.
	"failover": named(func(_ *Fleet, d Database) bool { return !d.Stopped && d.Members() > 1 }, nil),
	"stop": named(func(f *Fleet, d Database) bool { return !d.Stopped && apart(f, d) }, func(d *Database, _ Step) error {
		d.Stopped = true
		return nil
	}),
	"start": named(func(_ *Fleet, d Database) bool { return d.Stopped }, func(d *Database, _ Step) error {
		d.Stopped = false
		return nil
	}),
}
