package restore

import (
	"time"

	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Window is from when to when a restore of a database may be tried. Both are zero if no moment can be
// restored. End is the position in WAL of Latest, or 0 if nobody who is heard knows it.
type Window struct {
	Earliest, Latest time.Time
	End              lsn.LSN
	// From and Until are what is promised, which is less if a backup is in doubt, or zero.
	From, Until time.Time
}

// Latest is the newest moment to which a database that lives can be restored, as the host of its
// primary says, or zero. While there is no primary that says so, it is the newest moment that
// anybody said.
func Latest(facts plan.Facts) time.Time { return latest(facts).At }

func latest(facts plan.Facts) member.Mark {
	var newest member.Mark
	for _, m := range facts.Layout.Members {
		archived := facts.Reports[member.ID(facts.Want.ID, m.Name)].Archived
		if archived == nil || archived.Restorable.At.IsZero() {
			continue
		}
		if m.Name == facts.Leader {
			return archived.Restorable
		}
		if archived.Restorable.At.After(newest.At) {
			newest = archived.Restorable
		}
	}
	return newest
}

// WindowOf is that of a database that lives.
func WindowOf(l *look.Source, c spec.Common, facts plan.Facts) Window {
	if c.BackupRetention == 0 {
		return Window{}
	}
	return window(l, c.ResourceID, l.RepositoryOf(c.ResourceID), c.BackupRetention, latest(facts))
}

// WindowOfRetained is that of a database that was deleted, and whose backups were kept.
func WindowOfRetained(l *look.Source, a backup.Automated) Window {
	return window(l, a.Database, a.Repository, a.Retention, member.Mark{At: a.Until})
}

func window(l *look.Source, database, repository string, days int, latest member.Mark) Window {
	if latest.At.IsZero() {
		return Window{}
	}
	var all []backup.Backup
	for _, r := range state.ViewAll[backup.Backup](l.Cache, state.BackupPrefix(database)+repository+"/") {
		all = append(all, *r.Value)
	}
	if d, err := state.View[backup.DrillRecord](l.Cache, state.Drill(database)); err == nil && d.Value.Repository == repository {
		if at := d.Value.Latest(all, latest.At); !at.Equal(latest.At) {
			latest = member.Mark{At: at}
		}
	}
	now := l.Now().UTC()
	earliest, ok := backup.EarliestRestorable(all, days, now)
	if !ok || latest.At.IsZero() || latest.At.Before(earliest) {
		return Window{}
	}
	w := Window{Earliest: earliest, Latest: latest.At, End: latest.LSN}
	w.From, w.Until = backup.Promise(all, days, latest.At, now)
	return w
}

// Has reports whether a moment can be restored, as far as the window tells.
func (w Window) Has(moment time.Time) bool {
	return !w.Latest.IsZero() && !moment.Before(w.Earliest) && !moment.After(w.Latest)
}
