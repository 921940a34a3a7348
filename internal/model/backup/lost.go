package backup

import (
	"slices"
	"time"
)

// A drill may find that files of the repository are damaged or missing. The database has all that they
// were made of, so a full backup heals it: what is committed after that can be restored again.

// healed reports whether one of these backups was made because WAL was lost, after it was. Where it was
// lost is not known of a history.
func (d DrillRecord) healed(all []Backup) bool {
	return slices.ContainsFunc(all, func(b Backup) bool {
		return b.Repository == d.Repository && b.Heals && b.StartLSN > d.EndLSN && (d.EndLSN > 0 || b.Stop.After(d.Ended))
	})
}

// Lost reports whether the drill found WAL that is lost, and no backup has healed that. all are the
// backups of the database.
func (d DrillRecord) Lost(all []Backup) bool { return d.LostWAL != "" && !d.healed(all) }

// Latest returns the newest moment that can be restored, of which the repository's list of WAL says
// that it is at. What lies behind lost WAL cannot be. It is zero if nobody knows such a moment.
func (d DrillRecord) Latest(all []Backup, at time.Time) time.Time {
	if d.Lost(all) && at.After(d.Reaches) {
		return d.Reaches
	}
	return at
}

// Heal says why a full backup is to be made at once, or "". What is damaged in the database itself is
// damaged in the next backup, too: that is for people to look at.
func (d DrillRecord) Heal(all []Backup) string {
	if d.Lost(all) {
		return "a drill found that WAL was lost from " + d.LostWAL + " on"
	}
	newest, ok := Newest(slices.DeleteFunc(slices.Clone(all), func(b Backup) bool { return b.Repository != d.Repository }))
	if !ok || d.Unrestorable == "" || sound(all, newest) {
		return ""
	}
	if newest.Label == d.Label || slices.Contains(newest.Needs, d.Label) ||
		slices.ContainsFunc(d.Backups, func(label string) bool { return label == newest.Label || slices.Contains(newest.Needs, label) }) {
		return "a drill found that the backup " + d.Label + " is damaged in the repository"
	}
	return ""
}

// Spoils reports whether a backup of the database is damaged by what the drill found. WAL that is lost
// behind the end of a backup leaves it as it is.
func (d DrillRecord) Spoils(b Backup) bool {
	switch {
	case slices.Contains(d.Backups, b.Label):
		return true
	case b.Label != d.Label:
		return false
	case d.LostWAL != "":
		return d.EndLSN != 0 && d.EndLSN < b.StopLSN
	}
	return d.Faults > 0 || d.Unrestorable != ""
}
