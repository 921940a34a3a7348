package fence

import (
	"slices"

	"howdah/internal/model/patroni"
)

// Enough reports whether two things are certain: the old primary of a synchronous state can
// acknowledge nothing any more, and the candidate has every commit that it acknowledged. That is so
// if the candidate and the standbys in fenced are at least s.CutsNeeded. The caller must know of
// each standby in fenced that it confirms nothing to the old primary, and that it is not ahead of
// the candidate (docs/design/availability.md, Fences).
func Enough(s patroni.Sync, candidate string, fenced []string) bool {
	certain := 0
	for _, standby := range s.Standbys {
		if standby == candidate || slices.Contains(fenced, standby) {
			certain++
		}
	}
	return len(s.Standbys) > 0 && certain >= s.CutsNeeded()
}

// Candidates returns the synchronous standbys that may be promoted if those in fenced confirm
// nothing to the old primary. Promoting a standby takes it from the old primary, so a candidate
// counts as if it were fenced.
func Candidates(s patroni.Sync, fenced []string) []string {
	var may []string
	for _, standby := range s.Standbys {
		if Enough(s, standby, fenced) {
			may = append(may, standby)
		}
	}
	return may
}

// Unfenced returns the synchronous standbys that are neither the candidate nor in fenced. If Enough
// is false, fencing any of them would help.
func Unfenced(s patroni.Sync, candidate string, fenced []string) []string {
	var open []string
	for _, standby := range s.Standbys {
		if standby != candidate && !slices.Contains(fenced, standby) {
			open = append(open, standby)
		}
	}
	return open
}
