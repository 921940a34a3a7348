package mark

import (
	"testing"
	"time"

	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

// afternoon is a watch of a database whose clock was an hour ahead until a position, and then right.
func afternoon(t *testing.T) (w *Watch, mark func(clock time.Duration, end lsn.LSN) member.Mark) {
	t.Helper()
	w = watching(t, Segment{1, 3}, Segment{1, 4}, Segment{2, 5}, Segment{2, 6}, Segment{2, 7}, Segment{2, 8})
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	return w, func(clock time.Duration, end lsn.LSN) member.Mark {
		return member.Mark{At: noon.Add(clock), Timeline: 2, LSN: end}
	}
}

// A restore ends at the first commit that is later than its moment. So nothing is promised that the
// clock shows for the second time, until a backup was begun after it was set back.
func TestAMomentThatTheClockShowsTwice(t *testing.T) {
	w, mark := afternoon(t)
	ahead, right, later := mark(time.Hour, at(6, 1)), mark(time.Minute, at(7, 1)), mark(time.Hour+time.Minute, at(8, 1))
	for name, c := range map[string]struct {
		pending, book []member.Mark
		peak          member.Mark
		base          lsn.LSN // the backup began there
		want          int
	}{
		"it never was wrong":                {pending: []member.Mark{mark(0, at(6, 1)), right}, want: 1},
		"it was set back":                   {pending: []member.Mark{ahead, right}, want: 0},
		"set back, and an hour passed":      {pending: []member.Mark{ahead, right, later}, want: 2},
		"it was promised before":            {pending: []member.Mark{right}, book: []member.Mark{ahead}, want: -1},
		"promised before, and an hour":      {pending: []member.Mark{right, later}, book: []member.Mark{ahead}, want: 1},
		"promised on a branch that is left": {pending: []member.Mark{right}, book: []member.Mark{{At: ahead.At, Timeline: 1, LSN: at(6, 1)}}, want: 0},
		"others committed meanwhile":        {pending: []member.Mark{right}, peak: mark(time.Hour, right.LSN), want: -1},
		"a backup began after it":           {pending: []member.Mark{right}, book: []member.Mark{ahead}, peak: ahead, base: at(6, 2), want: 0},
		"a backup began before it":          {pending: []member.Mark{right}, book: []member.Mark{ahead}, base: at(6, 0), want: -1},
	} {
		w.epoch.pending, w.epoch.book, w.epoch.clock = c.pending, book{Marks: c.book}, clock{peak: c.peak}
		w.epoch.base = &Backup{Timeline: 1, Start: at(3, 40), Stop: at(4, 10)}
		if c.base != 0 {
			w.epoch.base = &Backup{Timeline: 2, Start: c.base, Stop: c.base + 1}
		}
		if got := w.newestWhole(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// The last mark in WAL is the newest one, and not that of a clock that was ahead.
func TestTheNewestMarkIsTheLastInWAL(t *testing.T) {
	w, mark := afternoon(t)
	files, err := store.OpenDirectory(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	var b book
	for _, m := range []member.Mark{mark(0, at(5, 200)), mark(time.Hour, at(6, 1)), mark(time.Minute, at(7, 1))} {
		if b, err = b.write(t.Context(), files, "db-1", m); err != nil {
			t.Fatal(err)
		}
	}
	for end, want := range map[lsn.LSN]member.Mark{at(9, 0): mark(time.Minute, at(7, 1)), at(6, 9): mark(time.Hour, at(6, 1))} {
		if got, err := Before(t.Context(), files, "db-1", w.epoch.history, end); err != nil || got != want {
			t.Errorf("before %s: %+v, %v", end, got, err)
		}
	}
}

// The clock is compared with the time that passed, so that what others committed is known, too.
func TestAClockThatIsSet(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	end := lsn.LSN(7)
	for name, c := range map[string]struct {
		shows, passed time.Duration // since the look before
		back          time.Duration
		peak          time.Duration // what it would show, after noon; 0: it was not set back
	}{
		"it goes":                   {time.Second, time.Second, 0, 0},
		"it is slowed down":         {999 * time.Millisecond, time.Second, 0, 0},
		"it is set back":            {-time.Hour, time.Second, time.Hour + time.Second, time.Second},
		"set back, after a pause":   {-time.Minute, time.Hour, time.Hour + time.Minute, time.Hour},
		"it is set ahead":           {time.Hour, time.Second, 0, 0},
		"the machine was suspended": {time.Hour, 0, 0, 0},
	} {
		var k clock
		k.passed(0, noon)
		if back := k.passed(c.passed, noon.Add(c.shows)); back != c.back {
			t.Errorf("%s: back by %s, want %s", name, back, c.back)
		}
		k.made(member.Mark{At: noon.Add(c.shows + 2*time.Second), LSN: end}, nil)
		if c.back > 0 {
			if !k.peak.At.Equal(noon.Add(c.peak)) || k.peak.LSN != end {
				t.Errorf("%s: %+v", name, k)
			}
			k.made(member.Mark{At: noon.Add(c.shows + 4*time.Second), LSN: end + 2}, &Backup{Start: end + 1})
			c.peak = c.shows + 4*time.Second // a backup began since
		} else {
			c.peak = c.shows + 2*time.Second
		}
		if !k.peak.At.Equal(noon.Add(c.peak)) || !k.ahead.IsZero() {
			t.Errorf("%s: %+v, want %s", name, k, c.peak)
		}
	}
	var first clock
	if back := first.look(time.Now()); back != 0 {
		t.Errorf("the first look: %s", back)
	}
	if back := first.look(time.Now()); back != 0 {
		t.Errorf("at once: %s", back)
	}
}
