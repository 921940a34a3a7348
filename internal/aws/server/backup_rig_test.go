package server

import (
	"encoding/json"
	"strings"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/format"
)

// backups gives the home a repository, another one for copies, and control planes that all read the
// records of restored databases.
func (w *world) backups() {
	w.Helper()
	w.put(
		state.Put(state.Repository("main"), backup.Repository{Name: "main", Kind: backup.Directory, Path: "/backups", Key: []byte("sealed"), Default: true}),
		state.Put(state.Repository("far"), backup.Repository{Name: "far", Kind: backup.Directory, Path: "/far", Key: []byte("sealed"), Copies: true}),
		state.Put(state.Control("c1"), format.Said{Reads: format.Newest, Format: 2, Release: "test"}),
	)
}

// settleBackups carries out the operations on backups that a user began, as their runner would.
func (u *user) settleBackups() {
	u.Helper()
	for _, r := range state.LoadAll[operation.Record](u.server.Cache, state.OperationRoot) {
		o := r.Value
		if o.About.Account != u.account || o.State.Ended() {
			continue
		}
		switch o.Kind {
		case backup.Take.Name, backup.Final.Name:
			u.take(o)
		case backup.Copy.Name:
			u.finishCopy(o)
		default:
			continue
		}
		o.State, o.Ended = operation.Done, u.now().UTC()
		u.put(state.Put(r.Key, o))
	}
}

// take makes a snapshot available, with a backup of its own.
func (u *user) take(o operation.Record) {
	u.Helper()
	var args backup.TakeArgs
	if err := json.Unmarshal(o.Args, &args); err != nil {
		u.Fatal(err)
	}
	s := u.snapshotAt(args.Snapshot)
	b := backup.Backup{
		Database: s.Database, Repository: args.Repository, Label: "label-of-" + o.ID, Kind: backup.Full, Operation: o.ID, Major: 15,
		Start: o.Began, Stop: u.now().UTC(), Timeline: 1, StartLSN: 1 << 24, StopLSN: 2 << 24, Size: 8 << 20, Stored: 4 << 20,
	}
	s.State, s.Label, s.Taken, s.Done, s.Size, s.Stored = backup.Available, b.Label, b.Stop, b.Stop, b.Size, b.Stored
	ops := []state.Op{state.Put(args.Snapshot, s), state.Put(state.Backup(b.Database, b.Repository, b.Label), b)}
	if o.Kind == backup.Final.Name {
		ops = append(ops, u.finished(s, args))
	}
	u.put(ops...)
}

// finishCopy makes a copy available, with a backup in its own part.
func (u *user) finishCopy(o operation.Record) {
	u.Helper()
	var args backup.CopyArgs
	if err := json.Unmarshal(o.Args, &args); err != nil {
		u.Fatal(err)
	}
	held, err := state.Load[backup.Backup](u.server.Cache, state.Backup(args.Source.Database, args.Source.Repository, args.Label))
	if err != nil {
		u.Fatal(err)
	}
	s := u.snapshotAt(args.Snapshot)
	b := backup.CopyOf(held.Value, backup.PartRef{Database: o.About.Database, Repository: args.Repository}, o.ID, 5<<20)
	s.State, s.Label, s.Done, s.Stored = backup.Available, b.Label, u.now().UTC(), b.Stored
	u.put(state.Put(args.Snapshot, s), state.Put(state.Backup(b.Database, b.Repository, b.Label), b))
}

// finished marks a database as being deleted, after its final snapshot.
func (u *user) finished(s backup.Snapshot, args backup.TakeArgs) state.Op {
	u.Helper()
	if s.Cluster != nil {
		c := u.clusterRecord(s.Cluster.Name)
		c.Deleting = true
		return state.Put(state.Cluster(c.Account, c.Region, c.Name), c)
	}
	i := u.instanceRecord(s.Instance.Name)
	i.Deleting = true
	return state.Put(state.Instance(i.Account, i.Region, i.Name), i)
}

// everythingIn has one repository for backups and for copies.
func (w *world) everythingIn(name string) {
	w.Helper()
	w.put(state.Delete(state.Repository("far")), state.Put(state.Repository(name), backup.Repository{Name: name, Kind: backup.Directory, Path: "/backups", Key: []byte("sealed"), Default: true, Copies: true}))
}

func (u *user) snapshotAt(key string) backup.Snapshot {
	u.Helper()
	r, err := state.Load[backup.Snapshot](u.server.Cache, key)
	if err != nil {
		u.Fatal(err)
	}
	return r.Value
}

// snapshotRecord is what is stored of a DB snapshot.
func (u *user) snapshotRecord(name string) backup.Snapshot {
	u.Helper()
	return u.snapshotAt(state.Snapshot(u.account, u.region, name))
}

// backedUp writes an automated backup of a database, of so long ago, and has its primary say that
// WAL is archived up to a minute ago.
func (u *user) backedUp(name string, ago ...time.Duration) {
	u.Helper()
	id := u.database(name).ID
	for _, before := range ago {
		stop := u.now().UTC().Add(-before).Truncate(time.Second)
		b := backup.Backup{
			Database: id, Repository: "main", Label: stop.Format("20060102-150405F"), Kind: backup.Full, Automated: true, Major: 15, Start: stop.Add(-time.Minute),
			Stop: stop, Timeline: 1, StartLSN: 1 << 24, StopLSN: 2 << 24,
		}
		u.put(state.Put(state.Backup(id, b.Repository, b.Label), b))
	}
	u.archivedUntil(name, time.Minute)
}

// archivedUntil has the primary of a database say up to when its WAL is archived.
func (u *user) archivedUntil(name string, ago time.Duration) {
	u.Helper()
	u.see(name, func(s *scene) {
		id := member.ID(s.layout.ID, s.leader)
		r := s.reports[id]
		r.Archived = &member.Archived{Restorable: member.Mark{At: u.now().UTC().Add(-ago).Truncate(time.Second), Timeline: 1, LSN: 3 << 24}}
		s.reports[id] = r
	})
}

// automatedOf writes what the keeper of backups records of a database that has one.
func (u *user) automatedOf(name string) backup.Automated {
	u.Helper()
	id := u.database(name).ID
	a := backup.Automated{Scope: u.scope(), Name: name, Database: id, Repository: "main", Created: u.now().UTC()}
	l := u.server.rds.Databases.Of(u.account)
	if c, ok := l.Cluster[id]; ok {
		a.Keep(nil, &c)
		a.Retention = c.BackupRetention
	} else {
		a.Keep(l.Instance[id], nil)
		a.Retention = l.Instance[id].BackupRetention
	}
	u.put(state.Put(state.Automated(id), a))
	return a
}

// eventsOf are the messages of events of a source.
func (u *user) eventsOf(kind, name string) string {
	u.Helper()
	return strings.Join(u.do("DescribeEvents?SourceType="+kind+"&SourceIdentifier="+name).result().texts("Events/Event/Message"), "; ")
}

// instanceIn is what is stored of an instance in a region.
func (u *user) instanceIn(region, name string) spec.Instance {
	u.Helper()
	there := *u
	there.region = region
	return there.instanceRecord(name)
}
