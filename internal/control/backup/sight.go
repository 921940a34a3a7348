package backup

import (
	"encoding/json"
	"slices"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// sight is one look at what needs backups.
type sight struct {
	cache     *state.Cache
	targets   map[string]target                           // by resource id
	snapshots map[string][]state.Record[*backup.Snapshot] // by whose part has their backup
	used      map[string][]string                         // labels, by database
	automated map[string]state.Record[*backup.Automated]  // by database
	active    []*operation.Record                         // of Take, Final and Tidy
	about     map[string][]*operation.Record              // the same, by database
}

func (b *Backups) look() sight {
	s := sight{
		cache: b.Cache, targets: b.databases(), snapshots: map[string][]state.Record[*backup.Snapshot]{}, used: map[string][]string{},
		automated: map[string]state.Record[*backup.Automated]{}, about: map[string][]*operation.Record{},
	}
	for _, root := range []string{state.SnapshotRoot, state.ClusterSnapshotRoot} {
		for _, r := range state.ViewAll[backup.Snapshot](b.Cache, root) {
			s.snapshots[r.Value.Holder()] = append(s.snapshots[r.Value.Holder()], r)
		}
	}
	for _, r := range state.ViewAll[backup.Automated](b.Cache, state.AutomatedRoot) {
		s.automated[r.Value.Database] = r
	}
	// A database that is being restored, and is no clone, uses the backup that it begins with.
	for id, t := range s.targets {
		from := t.common().Origin
		if from == nil || from.Live {
			continue
		}
		layout, err := state.View[plan.Layout](b.Cache, state.Layout(id))
		if err != nil || !layout.Value.Created {
			s.used[from.Database] = append(s.used[from.Database], from.Label)
		}
	}
	for _, o := range b.active("", backup.Drill, backup.Download) {
		if label := o.Notes[NoteLabel]; label != "" {
			s.used[o.About.Database] = append(s.used[o.About.Database], label)
		}
	}
	// A copy uses its source from the transaction on that begins it.
	for _, o := range b.active("", backup.Copy) {
		var args backup.CopyArgs
		if err := json.Unmarshal(o.Args, &args); err == nil {
			s.used[args.Source.Database] = append(s.used[args.Source.Database], args.Label)
		}
	}
	s.active = b.active("", backup.Take, backup.Final, backup.Tidy)
	for _, o := range s.active {
		s.about[o.About.Database] = append(s.about[o.About.Database], o)
	}
	return s
}

// works reports whether an operation of one of these kinds about a database is under way.
func (s sight) works(database string, kinds ...operation.Kind) bool {
	return slices.ContainsFunc(s.about[database], func(o *operation.Record) bool {
		return slices.ContainsFunc(kinds, func(k operation.Kind) bool { return k.Name == o.Kind })
	})
}

// holdings is what there is of a database in a repository, with the records.
type holdings struct {
	backup.Holdings
	backups   map[string]state.Record[*backup.Backup]   // by label
	snapshots map[string]state.Record[*backup.Snapshot] // by key
}

// holdings returns everything that is known of a part.
func (s sight) holdings(database, repository string) holdings {
	h := holdings{backups: map[string]state.Record[*backup.Backup]{}, snapshots: map[string]state.Record[*backup.Snapshot]{}}
	for _, r := range state.ViewAll[backup.Backup](s.cache, state.BackupPrefix(database)) {
		if r.Value.Repository == repository {
			h.backups[r.Value.Label] = r
			h.Backups = append(h.Backups, *r.Value)
		}
	}
	for _, r := range s.snapshots[database] {
		if r.Value.Repository == repository {
			h.snapshots[r.Key] = r
			h.Snapshots = append(h.Snapshots, *r.Value)
		}
	}
	if a, ok := s.automated[database]; ok && (a.Value.Repository == repository || a.Value.Second == repository) {
		h.Days = a.Value.Retention
	}
	_, _, placed := s.cache.Raw(state.Layout(database))
	t, ok := s.targets[database]
	h.Lives = placed || ok && !t.common().Deleting
	h.Used = s.used[database]
	return h
}

// over returns the changes of records that say what is not kept any longer.
func (h holdings) over(now time.Time) []state.Op {
	kept := h.Keep(now)
	var ops []state.Op
	for _, s := range kept.Expired {
		r := h.snapshots[snapshotKey(s)]
		ops = append(ops, state.Remove(r.Key, r.Revision))
	}
	for label, r := range h.backups {
		switch {
		case !slices.Contains(kept.Labels, label):
			ops = append(ops, state.Remove(r.Key, r.Revision))
		case slices.Contains(kept.Alone, label):
			next := *r.Value
			next.Alone = true
			ops = append(ops, state.Swap(r.Key, r.Revision, next))
		}
	}
	return ops
}

// gone reports whether nothing of the database is needed any more, nor will be.
func (h holdings) gone(k backup.Kept) bool {
	return !h.Lives && len(k.Labels) == 0 && !slices.ContainsFunc(h.Snapshots, func(s backup.Snapshot) bool {
		return s.State == backup.Creating || s.State == backup.Copying
	})
}

func snapshotKey(s backup.Snapshot) string {
	if s.Cluster != nil {
		return state.ClusterSnapshot(s.Account, s.Region, s.Name)
	}
	return state.Snapshot(s.Account, s.Region, s.Name)
}
