package mark

import (
	"time"

	"howdah/internal/model/member"
)

// mostBack is how far a clock may seem to go back because it is slowed down, or looked at twice.
const mostBack = 100 * time.Millisecond

// clock is what is known of the host's clock, which is the server's, too.
//
// A restore to a moment ends at the first commit in WAL that is later. If the clock was set back, that
// is one from before it was: what was committed after that, up to the same moment, would be missing.
// So a moment that the clock shows for the second time is no mark.
type clock struct {
	looked time.Time // zero: never
	// ahead is what the clock would show now, had it not been set back since the last mark.
	ahead time.Time // zero: it was not
	// peak is the latest moment that it showed, with a position behind it.
	peak member.Mark
}

// look compares the clock with the time that has really passed. It returns by how much it was set
// back since the last look, or 0.
func (c *clock) look(now time.Time) (back time.Duration) {
	return c.passed(now.Sub(c.looked), now) // by the monotonic clock
}

// passed is look, with the time that has really passed.
func (c *clock) passed(really time.Duration, now time.Time) (back time.Duration) {
	last := c.looked
	c.looked = now
	if last.IsZero() {
		return 0
	}
	shown := now.Round(0)
	expected := last.Round(0).Add(really)
	back = expected.Sub(shown)
	if back <= mostBack {
		return 0
	}
	if expected.After(c.ahead) {
		c.ahead = expected
	}
	return back
}

// made takes note of a mark. A peak from before the newest backup began says nothing any more.
func (c *clock) made(m member.Mark, base *Backup) {
	if base != nil && c.peak.LSN < base.Start {
		c.peak = member.Mark{}
	}
	if m.At.After(c.peak.At) {
		c.peak = m
	}
	if c.ahead.After(c.peak.At) {
		c.peak = member.Mark{At: c.ahead, Timeline: m.Timeline, LSN: m.LSN}
	}
	c.ahead = time.Time{}
}

// shownBefore reports whether a restore that begins with the newest backup would end before a mark,
// because WAL has a later moment before it.
func (e *epoch) shownBefore(m member.Mark) bool {
	later := func(p member.Mark) bool {
		return p.LSN >= e.base.Start && p.LSN <= m.LSN && p.At.After(m.At)
	}
	if later(e.clock.peak) {
		return true
	}
	for _, p := range e.pending {
		if later(p) {
			return true
		}
	}
	for _, p := range e.book.Marks {
		if later(p) && e.history.Has(p.Timeline, p.LSN) {
			return true
		}
	}
	return false
}
