package hang

import (
	"testing"
	"time"
)

// seen is what a PostgreSQL does between two looks, which are a quarter of a second apart.
type seen struct {
	looks   int
	answers bool // somebody
	works   bool // a child of the postmaster uses a processor
	head    bool // the postmaster does
	waits   bool // a process waits for a processor
	stuck   bool // a child waits for a disk
	busy    bool // … and is done with it again and again, between two looks
	spins   bool // … and wakes up now and then, for nothing
	hidden  bool // the kernel's list of children lacks that child at every second look
	writing bool // a small write is under way
	disk    bool // the disk completes writes
	pause   time.Duration
}

func TestHangJudge(t *testing.T) {
	patience := Patience{Silence: 2500 * time.Millisecond, Stall: 8 * time.Second}
	well := seen{looks: 40, answers: true, works: true, head: true}
	still := seen{looks: 200}
	cases := []struct {
		name  string
		story []seen
		want  time.Duration // after the last one's beginning; 0: no verdict
	}{
		{"all is well", []seen{well, well}, 0},
		{"an idle server", []seen{well, {looks: 400, answers: true}}, 0},
		{"stopped", []seen{well, still}, 2500 * time.Millisecond},
		{"stopped for two seconds", []seen{well, {looks: 8}, well}, 0},
		{"never seen to answer", []seen{still}, 2500 * time.Millisecond},
		{"answers nobody, and works", []seen{well, {looks: 400, works: true, head: true}}, 0},
		{"answers nobody, its children work, the postmaster does nothing", []seen{well, {looks: 200, works: true}}, 8 * time.Second},
		{"waits for a processor for seven seconds", []seen{well, {looks: 28, waits: true}, well}, 0},
		{"waits for a disk, and answers nobody", []seen{well, {looks: 200, stuck: true}}, 8 * time.Second},
		{"a disk of three seconds", []seen{well, {looks: 12, answers: true, writing: true, stuck: true}, well, {looks: 12, answers: true, writing: true, stuck: true}, well}, 0},
		{"a disk that hangs", []seen{well, {looks: 200, answers: true, works: true, writing: true, stuck: true}}, 8 * time.Second},
		{"a disk that hangs, and a machine with too much to do", []seen{well, {looks: 200, answers: true, works: true, waits: true, writing: true, stuck: true}}, 8 * time.Second},
		{"a disk that hangs, and who waits for it asks now and then", []seen{well, {looks: 200, answers: true, writing: true, stuck: true, spins: true}}, 8 * time.Second},
		{"a disk that hangs, and sessions that come and go", []seen{well, {looks: 200, answers: true, works: true, writing: true, stuck: true, hidden: true}}, 8 * time.Second},
		{"a disk that hangs after the write has waited for a lock", []seen{well, {looks: 20, answers: true, writing: true}, {looks: 200, answers: true, writing: true, stuck: true}}, 13 * time.Second},
		{"a disk that is slow and works", []seen{well, {looks: 120, answers: true, writing: true, disk: true, stuck: true}, well}, 0},
		{"a disk that works, and not for us", []seen{well, {looks: 200, answers: true, writing: true, disk: true, stuck: true}}, 32 * time.Second},
		{"a write that waits for a lock", []seen{well, {looks: 400, answers: true, writing: true}}, 0},
		{"a write that waits for a lock while others work", []seen{well, {looks: 400, answers: true, works: true, head: true, writing: true}}, 0},
		{"a write that waits for a processor", []seen{well, {looks: 400, answers: true, works: true, waits: true, writing: true}}, 0},
		{"a write that waits for a lock while another session reads a slow disk", []seen{well, {looks: 400, answers: true, writing: true, stuck: true, busy: true}}, 0},
		{"a write that waits for a lock, and one short wait for the disk after the other", []seen{well,
			{looks: 30, answers: true, writing: true, stuck: true}, {looks: 1, answers: true, writing: true},
			{looks: 30, answers: true, writing: true, stuck: true}, {looks: 1, answers: true, writing: true}}, 0},
		{"we stood still ourselves", []seen{well, {looks: 9}, {looks: 9, pause: 20 * time.Second}, well}, 0},
		{"we stand still again and again", []seen{well, {looks: 9, pause: 2 * time.Second}, {looks: 9, pause: 2 * time.Second}, {looks: 9, pause: 2 * time.Second}}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := verdictAfter(Judge{Patience: patience}, c.story); got != c.want {
				t.Errorf("a verdict after %s, want %s", got, c.want)
			}
		})
	}
}

// verdictAfter plays a story and returns when the verdict came, counted from the last answer or the
// beginning of the write. It returns 0 if there was none.
func verdictAfter(j Judge, story []seen) time.Duration {
	now := time.Unix(1_000_000, 0)
	l := Look{Activity: Activity{All: map[int]int64{1: 1, 2: 1, 3: 1}, Postmaster: 1}}
	began := now.Add(Every)
	for _, s := range story {
		now = now.Add(s.pause)
		for range s.looks {
			now = now.Add(Every)
			l = after(l, s, now)
			switch {
			case !l.Writing.IsZero():
				began = l.Writing
			case s.answers:
				began = now
			}
			if why := j.Verdict(l); why != "" {
				return now.Sub(began)
			}
		}
	}
	return 0
}

// after returns the next look at a server.
func after(l Look, s seen, now time.Time) Look {
	l.At = now
	shown := len(l.Activity.disk) > 0
	all := map[int]int64{1: l.Activity.All[1], 2: l.Activity.All[2], 3: max(l.Activity.All[3], 1)}
	if s.answers {
		l.Answered = now
	}
	if s.works {
		all[2] += 1000
	}
	if s.head {
		all[1] += 1000
	}
	if s.disk {
		l.Writes++
	}
	if s.busy {
		all[3] += (2 * time.Millisecond).Nanoseconds()
	}
	if s.spins {
		all[3] += (60 * time.Microsecond).Nanoseconds()
	}
	switch {
	case !s.writing:
		l.Writing = time.Time{}
	case l.Writing.IsZero():
		l.Writing = now
	}
	l.Activity = Activity{All: all, Postmaster: all[1], Waits: s.waits || s.stuck}
	switch {
	case s.hidden && shown:
		delete(all, 3)
	case s.stuck:
		l.Activity.disk = []int{3}
	}
	return l
}
