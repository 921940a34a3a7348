package plan

import (
	"time"

	"howdah/internal/model/member"
)

// A new standby begins with a backup of its database, if there is one, so that the primary has not to
// send all its files. The standby's host looks whether the backup will do (package seed there).
//
// The first standby of a restored database waits for the first backup. A restored database serves
// without it meanwhile, as soon as its primary does: what was committed is in the archive, half a minute
// later. That no standby is in sync is told.

const (
	// backupBegins is how long the first backup of a restored database may take to begin, once a
	// standby is wanted, and backupWithin how long to end.
	backupBegins = 2 * time.Minute
	backupWithin = time.Hour
)

// awaitBackup is the step of a database whose standbys wait.
const awaitBackup = "waiting for the first backup, which the standby is made of"

// copyOf returns what a new member may begin with.
func (p places) copyOf() *member.Copy {
	if p.Want.Upstream != nil || p.Want.Archive == nil || p.Leader == "" {
		return nil
	}
	return p.Backup
}

// awaitsBackup reports whether a seat stays empty until there is a backup of a restored database. It
// does not wait where commits wait for a standby, nor for what is not being made.
func (w *work) awaitsBackup() bool {
	l := &w.out.Layout
	if w.Want.Restore == nil || w.Want.Archive == nil || !w.Want.BackedUp || w.Want.WaitForStandby || w.Want.Upstream != nil ||
		w.Backup != nil || len(w.members()) != 1 || !l.Restored {
		return false
	}
	if l.Alone.IsZero() {
		l.Alone = w.Now
	}
	waited := w.Now.Sub(l.Alone)
	return waited < backupBegins || w.BackingUp && waited < backupWithin
}
