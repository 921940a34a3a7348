package upkeep

import (
	"time"
)

// The rules by which RDS has storage grow.
const (
	// scarceFor is how long little has to be left.
	scarceFor = 5 * time.Minute
	// changeEvery is how long after a change of the size another one may come. RDS now says that fewer
	// than four may have come within 24 hours, and that storage was optimized since the last. With six
	// hours between them that is so, and a burst does not use them up.
	changeEvery = 6 * time.Hour
	// leastGrowth is the least by which storage grows, in GiB.
	leastGrowth = 10
	// ahead is for how long it is reckoned what the database will need.
	ahead = 7 * time.Hour
	// remembered is what that is reckoned from. From less than leastRemembered nothing is.
	remembered      = time.Hour
	leastRemembered = 5 * time.Minute
	// sampleEvery bounds how many samples there are.
	sampleEvery = time.Minute
)

// store is what is known of storage that may grow: since when little is left of it, and what was used
// in the past hour. It is not kept over a restart of the control plane. Then both begin anew, so that
// storage grows later, never earlier.
type store struct {
	scarce time.Time // zero: enough is left
	used   []sample  // the oldest first
	told   string    // why it could not grow
}

type sample struct {
	at   time.Time
	used int64 // bytes
}

// see takes note of what is used of an allocated size, both in bytes.
func (s *store) see(now time.Time, used, allocated int64) {
	if n := len(s.used); n > 0 && now.Before(s.used[n-1].at) {
		*s = store{told: s.told} // the clock was set back
	}
	if n := len(s.used); n == 0 || now.Sub(s.used[n-1].at) >= sampleEvery {
		s.used = append(s.used, sample{now, used})
	}
	for len(s.used) > 1 && now.Sub(s.used[0].at) > remembered {
		s.used = s.used[1:]
	}
	switch {
	case allocated-used > allocated/10:
		s.scarce, s.told = time.Time{}, ""
	case s.scarce.IsZero():
		s.scarce = now
	}
}

// predicted is by how many bytes the data will have grown after some hours, if they go on growing as
// they did.
func (s *store) predicted(now time.Time, used int64) int64 {
	if len(s.used) == 0 {
		return 0
	}
	first := s.used[0]
	long := now.Sub(first.at)
	if long < leastRemembered || used <= first.used {
		return 0
	}
	return int64(float64(used-first.used) * float64(ahead) / float64(long))
}

// due reports whether storage that changed at a time is to grow now.
func (s *store) due(now, changed time.Time) bool {
	if s.scarce.IsZero() || now.Sub(s.scarce) < scarceFor {
		return false
	}
	// A change in the far future was noted by a clock that was wrong.
	since := now.Sub(changed)
	return changed.IsZero() || since >= changeEvery || since < -changeEvery
}

// grown is the size, in GiB, that storage of a size gets: greater by the greatest of 10 GiB, a tenth,
// and what is predicted, and never above the most.
func grown(size, most int, predicted int64) int {
	const gib = 1 << 30
	return min(size+max(leastGrowth, (size+9)/10, int((predicted+gib-1)/gib)), most)
}
