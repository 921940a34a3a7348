package backup

import (
	"time"

	"howdah/internal/model/spec"
)

// Due returns when the backup window opened for which an automated backup is to be begun now, and
// whether one is. last is the window for which one was begun last, zero if none ever was: then the
// first one is due at once. A window that was missed is made up for a day after the last one, at any
// time of the day. A window that users moved is not. A last window that is far in the future was noted
// by a clock that was wrong: the next window counts.
func Due(window string, last, now time.Time) (time.Time, bool) {
	now = now.UTC()
	if last.IsZero() {
		return now.Truncate(time.Minute), true
	}
	opened, inside := spec.BackupWindow(window, now)
	if last.Sub(now) > Day {
		return opened, inside
	}
	if opened.IsZero() || !opened.After(last) {
		return time.Time{}, false
	}
	return opened, inside || now.Sub(last) >= Day
}

// How long an automated backup may take from the opening of its window, and how long ago the window of
// the last one may have opened, before something is wrong.
const (
	takesAtMost = 3 * time.Hour
	apartAtMost = 26 * time.Hour
)

// Late reports whether the newest automated backup that was made is too old, of a database that lives.
func (a Automated) Late(now time.Time) bool {
	switch {
	case a.Retained || a.Retention == 0 || a.Window.IsZero():
		return false
	case a.Made.Equal(a.Window):
		return now.Sub(a.Window) > apartAtMost
	}
	return now.Sub(a.Window) > takesAtMost
}
