package probe

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// waitsLong is for how long a commit may wait for standbys before that is told: longer
// than it takes to give up a standby that was lost.
const waitsLong = 5 * time.Second

// commitWaits remembers which commits of a server wait for standbys. A commit in that
// wait cannot be cancelled, and PostgreSQL has no way to tell its client (the README of
// our module says why): so the platform tells.
type commitWaits struct {
	since map[string]time.Time // when each was seen first
}

// look takes in which commits wait now, and answers how many of them have done so for
// long, and since when.
func (w *commitWaits) look(now time.Time, waiting []string) (stuck int, since time.Time) {
	maps.DeleteFunc(w.since, func(commit string, _ time.Time) bool { return !slices.Contains(waiting, commit) })
	if w.since == nil {
		w.since = map[string]time.Time{}
	}
	for _, commit := range waiting {
		first, seen := w.since[commit]
		if !seen {
			w.since[commit] = now
			continue
		}
		if now.Sub(first) < waitsLong {
			continue
		}
		stuck++
		if since.IsZero() || first.Before(since) {
			since = first
		}
	}
	return stuck, since
}

// ExplainWaits is what a person is told of commits that wait.
func ExplainWaits(stuck int, since time.Time) string {
	return fmt.Sprintf("%d, the first since %s", stuck, since.UTC().Format("15:04:05Z"))
}
