package backup

import (
	"maps"
	"slices"
	"time"
)

// Day is the unit of retention periods.
const Day = 24 * time.Hour

// Holdings is what there is of one database in one repository, and who needs it.
type Holdings struct {
	Backups []Backup // in any order
	// Snapshots are those whose backup is in the repository. One that is being made has no label.
	Snapshots []Snapshot
	// Days is the retention period of the automated backups; 0: there are none.
	Days int
	// Lives says that the database is there, and may be backed up again.
	Lives bool
	// Used lists the labels that restores, copies and drills under way begin with.
	Used []string
}

// Kept is what stays of Holdings.
type Kept struct {
	// Labels is what must be in the repository, sorted: also what backups need that has no record.
	Labels []string
	// Backups are the records that stay, the oldest first.
	Backups []Backup
	// Archive is from how many backups back on all WAL is needed: see TidyJob. Alone are the labels of
	// those before, which become Alone.
	Archive int
	Alone   []string
	// Expired are the automated snapshots that are over.
	Expired []Snapshot
}

// longestRetention is the longest retention period that users can ask for.
const longestRetention = 35 * Day

// Floor is the oldest moment that a retention period promises. Nothing is promised for 0 days.
func Floor(days int, now time.Time) time.Time { return now.Add(-time.Duration(days) * Day) }

// Keep decides what stays. A backup stays while one of these needs it, or needs one that needs it:
//
//   - a snapshot that is not over;
//   - a restore, a copy or a drill under way;
//   - the retention period (see floor): every automated backup in it, and the newest backup before it,
//     without which the first moments of the period could not be restored;
//   - the database itself, if it lives: its next backup builds upon the newest one;
//   - those who may have been promised what was Found. An automated one stays for the longest
//     retention period. Another one stays, unless it got a snapshot, which users may delete.
func (h Holdings) Keep(now time.Time) Kept {
	all := slices.SortedFunc(slices.Values(h.Backups), func(a, b Backup) int { return a.Stop.Compare(b.Stop) })
	var k Kept
	floor := h.floor(all, now)
	needed := map[string]bool{}
	anchor := -1 // from there on WAL is needed
	reach := func(n int) {
		if !all[n].Alone && (anchor < 0 || n < anchor) {
			anchor = n
		}
	}
	for _, s := range h.Snapshots {
		if h.over(s, floor) {
			k.Expired = append(k.Expired, s)
		} else if s.Label != "" {
			needed[s.Label] = true
		}
	}
	for _, label := range h.Used {
		needed[label] = true
	}
	for n, b := range all {
		switch {
		case slices.Contains(h.Used, b.Label):
			reach(n) // a restore may want any moment after it
		case h.Days > 0 && b.Automated && b.Stop.After(floor), !b.Found.IsZero() && (!b.Automated || now.Before(b.Found.Add(longestRetention))):
			needed[b.Label] = true
			reach(n)
		}
	}
	if n := before(all, floor); n >= 0 && h.Days > 0 {
		needed[all[n].Label] = true
		reach(n)
	}
	if len(all) > 0 && h.Lives {
		needed[all[len(all)-1].Label] = true
	}
	for _, b := range all {
		if needed[b.Label] {
			for _, label := range b.Needs {
				needed[label] = true
			}
		}
	}
	k.Labels = slices.Sorted(maps.Keys(needed))
	k.Archive = 1
	for n, b := range all {
		if !needed[b.Label] {
			continue
		}
		k.Backups = append(k.Backups, b)
		if anchor >= 0 && n > anchor {
			k.Archive++
		}
	}
	for n := range len(k.Backups) - k.Archive {
		if b := &k.Backups[n]; !b.Alone {
			b.Alone = true
			k.Alone = append(k.Alone, b.Label)
		}
	}
	// Where those without a record are in the order is not known here: rather some WAL too much.
	k.Archive += len(k.Labels) - len(k.Backups)
	return k
}

// floor returns the oldest moment that has to be kept. A clock that jumped ahead would make all
// backups old at once. So of a database that lives as many automated backups stay as the retention
// period has days, whatever their age: one is made each day.
func (h Holdings) floor(sorted []Backup, now time.Time) time.Time {
	floor, left := Floor(h.Days, now), h.Days
	if !h.Lives || left == 0 {
		return floor
	}
	for _, b := range slices.Backward(sorted) {
		if !b.Automated || b.Damaged != "" {
			continue
		}
		if left--; left == 0 {
			if oldest := b.Stop.Add(-1); oldest.Before(floor) {
				return oldest
			}
			return floor
		}
	}
	return time.Time{}
}

// over reports whether an automated snapshot is not kept any longer. Those that users made stay until
// users delete them.
func (h Holdings) over(s Snapshot, floor time.Time) bool {
	if !s.Automated || s.State == Creating {
		return false
	}
	return h.Days == 0 || !s.moment().After(floor)
}

// moment returns when the data were taken, or were to be.
func (s Snapshot) moment() time.Time {
	if s.Taken.IsZero() {
		return s.Asked
	}
	return s.Taken
}

// before returns the place of the newest backup from which a moment can be restored as far as WAL was
// not lost, or -1. all are sorted.
func before(all []Backup, moment time.Time) int {
	for n := len(all) - 1; n >= 0; n-- {
		if !all[n].Stop.After(moment) && !all[n].Alone && sound(all, all[n]) {
			return n
		}
	}
	return -1
}

// EarliestRestorable returns the oldest moment that is promised for a database with a retention
// period of so many days. all are its backups in the repository that has its WAL. It returns false if
// no moment is.
func EarliestRestorable(all []Backup, days int, now time.Time) (time.Time, bool) {
	if days == 0 {
		return time.Time{}, false
	}
	return earliest(all, all, Floor(days, now))
}

// earliest returns the oldest moment from a floor on that can be restored from some of all backups.
func earliest(all, some []Backup, floor time.Time) (time.Time, bool) {
	if _, ok := base(all, some, floor); ok {
		return floor, true
	}
	for _, b := range byStop(some) {
		if b.Automated && !b.Alone && !b.Stop.Before(floor) && sound(all, b) {
			return b.Stop, true
		}
	}
	return time.Time{}, false
}

func byStop(all []Backup) []Backup {
	return slices.SortedFunc(slices.Values(all), func(a, b Backup) int { return a.Stop.Compare(b.Stop) })
}

// Base returns the backup to begin with when a moment is to be restored. It returns false if the moment
// cannot be restored: it is too early, or lies in a gap of the WAL.
func Base(all []Backup, moment time.Time) (Backup, bool) { return base(all, all, moment) }

// base returns one of some of all backups.
func base(all, some []Backup, moment time.Time) (Backup, bool) {
	sorted := byStop(some)
	n := before(sorted, moment)
	if n < 0 || crosses(all, sorted[n], moment) {
		return Backup{}, false
	}
	return sorted[n], true
}

// Promise returns the oldest and the newest moment that a database is said to be restorable to; zero
// times: none is. latest is the newest one that its WAL reaches. It stands on backups that are sound
// and not in doubt: what is told must hold. A restore may be tried of more.
func Promise(all []Backup, days int, latest, now time.Time) (from, until time.Time) {
	sure := slices.DeleteFunc(slices.Clone(all), func(b Backup) bool { return InDoubt(all, b) })
	if _, ok := base(all, sure, latest); !ok || days == 0 {
		return time.Time{}, time.Time{}
	}
	from, ok := earliest(all, sure, Floor(days, now))
	if !ok || latest.Before(from) {
		return time.Time{}, time.Time{}
	}
	return from, latest
}

// crosses reports whether WAL is missing between a backup and a moment after it. A later backup says
// so that healed the archive, whether or not it can be restored itself.
func crosses(all []Backup, from Backup, moment time.Time) bool {
	return slices.ContainsFunc(all, func(b Backup) bool {
		return b.Heals && b.Stop.After(from.Stop) && moment.After(b.Gap)
	})
}
