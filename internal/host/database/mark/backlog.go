package mark

import (
	"slices"
	"time"

	"howdah/internal/model/member"
)

// failsAfter is how long the file whose turn it is may wait before the archive counts as failing.
const failsAfter = 30 * time.Second

// backlog is what was seen last of what waits.
type backlog struct {
	looked time.Time
	first  string    // the file whose turn it is; "": nothing waits
	count  int       // how many wait
	since  time.Time // it is so since
	gap    string    // what was missing in the repository at the look before
	gapped time.Time // it is missing since
	// idle is since when it has been known that the server archives nothing; zero: it does.
	idle time.Time
}

// Off says why nothing is archived by a server that was started without an archive, as by a release
// that had none.
const Off = "the server archives nothing until it is restarted: reboot the database"

// off takes note of whether the server archives.
func (l *backlog) off(archives bool, now time.Time) {
	switch {
	case archives:
		l.idle = time.Time{}
	case l.idle.IsZero():
		l.idle = now
	}
}

// lookBack finds out how much waits, whether it goes on, and what was given up.
func (w *Watch) lookBack(now time.Time) {
	if now.Sub(w.backlog.looked) < backlogEvery {
		return
	}
	w.backlog.looked = now
	b, err := w.Backlog()
	if err != nil {
		w.Log.Debug("look what waits to be archived", "error", err)
		return
	}
	since := w.backlog.waits(b, now)
	broken := w.broken(b, now)
	w.tell(func(a *member.Archived) {
		a.Waiting = int64(len(b.Ready)) * SegmentSize
		a.Failing, a.Since, a.Broken = "", time.Time{}, broken
		a.Restorable = w.until(broken, a.Restorable)
		if !since.IsZero() && now.Sub(since) >= failsAfter {
			a.Since, a.Failing = since.UTC(), w.why()
		}
		if !w.backlog.idle.IsZero() {
			a.Since, a.Failing = w.backlog.idle.UTC(), Off
		}
	})
}

// until returns a mark, or the newest one before a file that is lost. What was archived may be gone
// from the repository again.
func (w *Watch) until(lost string, m member.Mark) member.Mark {
	file, ok := ParseSegment(lost)
	if !ok || m.LSN <= file.Begin() {
		return m
	}
	return w.epoch.book.before(w.epoch.history, file.Begin())
}

// why is never empty.
func (w *Watch) why() string {
	if why := w.Why(); why != "" {
		return why
	}
	return "PostgreSQL's archive command does not end well: its server log says why"
}

// waits returns since when nothing goes on, or zero if nothing waits. It goes on where another file
// has its turn, or fewer wait: several may be archived at once. To give a file up is not to go on.
func (l *backlog) waits(b Backlog, now time.Time) (since time.Time) {
	if len(b.Ready) == 0 {
		l.first, l.count, l.since = "", 0, time.Time{}
		return time.Time{}
	}
	gaveUp := slices.Contains(b.Broken, l.first)
	if l.first == "" || !gaveUp && (b.Ready[0] != l.first || len(b.Ready) < l.count) {
		l.since = now
	}
	l.first, l.count = b.Ready[0], len(b.Ready)
	return l.since
}

// broken returns the first file of WAL that is lost to the archive, or "". It is one that was given
// up here, or that a primary before has not archived and nobody has any more.
func (w *Watch) broken(b Backlog, now time.Time) string {
	var first string
	var over []string
	foreign := make(map[string]bool, len(b.Foreign))
	for _, name := range b.Foreign {
		foreign[name] = true
	}
	for _, name := range slices.Concat(b.Broken, b.Foreign) {
		switch {
		case w.harmless(name) || w.arrived(name) && !foreign[name]:
			over = append(over, name)
		case first == "":
			first = name
		}
	}
	if len(over) > 0 {
		if err := w.Forget(over); err != nil {
			w.Log.Warn("forget what is missing in the archive", "error", err)
		}
	}
	if first != "" {
		return first
	}
	// Files may come in another order than they were written: it counts when it is still so. Nobody
	// tells of a file that the primary before sent just before it died, and that came in after the
	// list was made: it counts when a list that was made since lacks it.
	before := w.backlog.gap
	switch w.backlog.gap = w.gap(b.Ready); {
	case w.backlog.gap != before:
		w.backlog.gapped = now
		return ""
	case before != "" && !w.epoch.listed.After(w.backlog.gapped):
		w.epoch.relist = true
		return ""
	}
	return before
}

// arrived reports whether the repository has a file. A standby gives up what waits for too long, too,
// and its primary may have archived it later.
func (w *Watch) arrived(name string) bool {
	file, ok := ParseSegment(name)
	if !ok || w.epoch.listed.IsZero() {
		return false
	}
	w.mu.Lock()
	stock := w.stock
	w.mu.Unlock()
	return stock.Has(file)
}

// harmless: a backup began after the file, or the file is of a branch that was abandoned. The history
// of a timeline is needed to restore a backup of an earlier one.
func (w *Watch) harmless(name string) bool {
	e := &w.epoch
	if e.timeline == 0 {
		return false
	}
	if timeline, ok := parseHistoryName(name); ok {
		return !e.history.on(timeline) || e.base != nil && e.base.Timeline >= timeline
	}
	file, ok := ParseSegment(name)
	if !ok {
		return false
	}
	if e.history.left(file) {
		return true
	}
	return e.base != nil && file.Timeline <= e.base.Timeline && file.Number < uint64(e.base.Start)/SegmentSize
}

// gap returns the first file that the repository lacks before one that it has, and that does not
// wait here.
func (w *Watch) gap(ready []string) string {
	e := &w.epoch
	if e.base == nil || e.listed.IsZero() {
		return ""
	}
	w.mu.Lock()
	stock := w.stock
	w.mu.Unlock()
	newest, ok := stock.Newest(e.timeline)
	if !ok {
		return ""
	}
	to := Point{e.timeline, lsnAfter(newest)}
	missing, found := stock.Missing(e.history, e.from(), to)
	if !found || slices.Contains(ready, missing.String()) {
		return ""
	}
	return missing.String()
}
