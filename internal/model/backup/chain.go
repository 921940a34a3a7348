package backup

import (
	"slices"
	"time"
)

// FullEvery is how old the newest full backup of a database may be before the next one is full again.
const FullEvery = 7 * 24 * time.Hour

// mostNeeds is how long a chain gets at most. Whoever makes snapshots over and over would make one
// that nobody can record: the result of a job has 8 KiB.
const mostNeeds = 64

// NeedsFull reports whether the next backup must be a full one: an incremental backup is worth what
// it needs is worth. all are the backups of the database in the repository, in any order.
func NeedsFull(all []Backup, major int, now time.Time) bool {
	newest, ok := Newest(all)
	if !ok || newest.Major != major || !sound(all, newest) || len(newest.Needs) >= mostNeeds {
		return true
	}
	full, ok := newestFull(all)
	return !ok || now.Sub(full.Stop) >= FullEvery
}

// Newest returns the backup that ended last.
func Newest(all []Backup) (Backup, bool) {
	if len(all) == 0 {
		return Backup{}, false
	}
	return slices.MaxFunc(all, func(a, b Backup) int { return a.Stop.Compare(b.Stop) }), true
}

func newestFull(all []Backup) (Backup, bool) {
	return Newest(slices.DeleteFunc(slices.Clone(all), func(b Backup) bool { return b.Kind != Full }))
}

// sound reports whether nothing is known to be wrong with a backup and with what it needs.
func sound(all []Backup, b Backup) bool { return Damage(all, b) == "" }

// Damage is what is known to be wrong with a backup, or with one that it needs, or "". What it needs may
// have no record: an operation may have been cancelled after its backup was made.
func Damage(all []Backup, b Backup) string {
	if b.Damaged != "" {
		return b.Damaged
	}
	for _, other := range all {
		if other.Damaged != "" && slices.Contains(b.Needs, other.Label) {
			return "it needs " + other.Label + ", of which is said: " + other.Damaged
		}
	}
	return ""
}

// First returns the backup that a new standby of the database best begins with: the newest of which
// nothing is known to be wrong, and that WAL follows.
func First(all []Backup, major int) (Backup, bool) {
	return Newest(slices.DeleteFunc(slices.Clone(all), func(b Backup) bool {
		return b.Major != major || b.Alone || b.CopyOf != "" || !sound(all, b) || InDoubt(all, b)
	}))
}

// InDoubt reports whether a damaged backup needs this one, so that the damage may be here, as far as
// nobody knows where it is. Nothing is to be promised of it until a drill says more. A restore that begins with it may well work.
func InDoubt(all []Backup, b Backup) bool {
	return slices.ContainsFunc(all, func(other Backup) bool {
		return other.Damaged != "" && !other.Located && slices.Contains(other.Needs, b.Label)
	})
}
