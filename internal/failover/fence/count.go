package fence

import (
	"slices"

	"howdah/internal/model/patroni"
)

// Enough reports whether the old primary of a synchronous state can acknowledge
// nothing any more, and a candidate has all that it acknowledged: if more standbys
// than may be missing from its commits are certain. Certain is the candidate itself,
// and each standby in fenced, which the caller knows to confirm nothing to the old
// primary, and not to be ahead of the candidate (docs/design/availability.md, Fences).
func Enough(s patroni.Sync, candidate string, fenced []string) bool {
	certain := 0
	for _, standby := range s.Standbys {
		if standby == candidate || slices.Contains(fenced, standby) {
			certain++
		}
	}
	return len(s.Standbys) > 0 && certain >= s.CutsNeeded()
}

// Candidates are the synchronous standbys of which one may be promoted when those in
// fenced confirm nothing to the old primary: one more of them can make a count whole,
// because who is promoted leaves the old primary.
func Candidates(s patroni.Sync, fenced []string) []string {
	var may []string
	for _, standby := range s.Standbys {
		if Enough(s, standby, fenced) {
			may = append(may, standby)
		}
	}
	return may
}

// Unfenced are the synchronous standbys besides a candidate that are not in fenced:
// each of them would help where there are not enough.
func Unfenced(s patroni.Sync, candidate string, fenced []string) []string {
	var open []string
	for _, standby := range s.Standbys {
		if standby != candidate && !slices.Contains(fenced, standby) {
			open = append(open, standby)
		}
	}
	return open
}
