package backup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// at returns a backup that ended so many days before noon.
func at(label string, days float64, change ...func(*Backup)) Backup {
	b := Backup{Label: label, Kind: Full, Automated: true, Major: 15, Stop: noon.Add(-time.Duration(days * float64(Day)))}
	for _, c := range change {
		c(&b)
	}
	return b
}

func needs(labels ...string) func(*Backup) {
	return func(b *Backup) { b.Kind, b.Needs = Incremental, labels }
}

func manual(b *Backup)  { b.Automated = false }
func damaged(b *Backup) { b.Damaged = "a page is wrong" }

func alone(b *Backup) { b.Alone = true }

func heals(gap float64) func(*Backup) {
	return func(b *Backup) { b.Heals, b.Gap = true, noon.Add(-time.Duration(gap*float64(Day))) }
}

func shot(label string, days float64, automated bool) Snapshot {
	return Snapshot{Name: label, Label: label, State: Available, Automated: automated, Taken: noon.Add(-time.Duration(days * float64(Day)))}
}

func TestNeedsFull(t *testing.T) {
	for name, c := range map[string]struct {
		all  []Backup
		want bool
	}{
		"none":                  {nil, true},
		"a young one":           {[]Backup{at("a", 1)}, false},
		"an old one":            {[]Backup{at("a", 7)}, true},
		"a young chain":         {[]Backup{at("b", 1, needs("a")), at("a", 6)}, false},
		"an old chain":          {[]Backup{at("b", 1, needs("a")), at("a", 8)}, true},
		"a damaged one":         {[]Backup{at("a", 1, damaged)}, true},
		"one on a damaged one":  {[]Backup{at("b", 1, needs("a")), at("a", 2, damaged)}, true},
		"one beside a damaged":  {[]Backup{at("b", 1), at("a", 2, damaged)}, false},
		"of an earlier version": {[]Backup{at("a", 1, func(b *Backup) { b.Major = 14 })}, true},
		"on one without record": {[]Backup{at("b", 1, needs("a"))}, true},
	} {
		if got := NeedsFull(c.all, 15, noon); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFirst(t *testing.T) {
	for name, c := range map[string]struct {
		all  []Backup
		want string
	}{
		"none":                         {nil, ""},
		"the newest":                   {[]Backup{at("a", 2), at("b", 1, needs("a"))}, "b"},
		"a damaged one":                {[]Backup{at("a", 2), at("b", 1, damaged)}, "a"},
		"one on a damaged one":         {[]Backup{at("a", 2, damaged), at("b", 1, needs("a"))}, ""},
		"one that a damaged one needs": {[]Backup{at("a", 2), at("b", 1, needs("a"), damaged)}, ""},
		"one without WAL":              {[]Backup{at("a", 2), at("b", 1, alone)}, "a"},
		"of an earlier version":        {[]Backup{at("a", 1, func(b *Backup) { b.Major = 14 })}, ""},
		"a copy":                       {[]Backup{at("a", 1, func(b *Backup) { b.CopyOf = "db-0/a" })}, ""},
	} {
		if got, ok := First(c.all, 15); got.Label != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q", name, got.Label)
		}
	}
}

func TestKeep(t *testing.T) {
	week := []Backup{at("a", 9), at("b", 8, needs("a")), at("c", 5, needs("a", "b")), at("d", 2), at("e", 1, needs("d"))}
	for name, c := range map[string]struct {
		h       Holdings
		want    string
		archive int
		expired int
	}{
		"nothing":                             {Holdings{Lives: true}, "", 1, 0},
		"nobody needs anything":               {Holdings{Backups: week}, "", 1, 0},
		"the next one builds upon the newest": {Holdings{Backups: week, Lives: true}, "d e", 1, 0},
		"a week, with too few backups":        {Holdings{Backups: week, Days: 7, Lives: true}, "a b c d e", 5, 0},
		"three days":                          {Holdings{Backups: week, Days: 3, Lives: true}, "a b c d e", 4, 0},
		"a day":                               {Holdings{Backups: week, Days: 1, Lives: true}, "d e", 2, 0},
		"two days of a deleted one":           {Holdings{Backups: week, Days: 2}, "d e", 2, 0},
		"a snapshot":                          {Holdings{Backups: week, Snapshots: []Snapshot{shot("b", 8, false)}}, "a b", 1, 0},
		"a snapshot of a live one":            {Holdings{Backups: week, Snapshots: []Snapshot{shot("b", 8, false)}, Lives: true}, "a b d e", 1, 0},
		"an old automated snapshot":           {Holdings{Backups: week, Snapshots: []Snapshot{shot("b", 8, true)}, Days: 2, Lives: true}, "a b c d e", 3, 1},
		"automated ones without a period":     {Holdings{Backups: week, Snapshots: []Snapshot{shot("d", 2, true), shot("e", 1, true)}, Lives: true}, "d e", 1, 2},
		"one that is being made":              {Holdings{Snapshots: []Snapshot{{Automated: true, State: Creating}}}, "", 1, 0},
		"a restore":                           {Holdings{Backups: week, Used: []string{"c"}}, "a b c", 1, 0},
		"a restore, and the newest":           {Holdings{Backups: week, Used: []string{"c"}, Lives: true}, "a b c d e", 3, 0},
		"one without a record is needed":      {Holdings{Backups: []Backup{at("b", 1, needs("a"))}, Days: 1, Lives: true}, "a b", 2, 0},
		"the last before the period is damaged": {
			Holdings{Backups: []Backup{at("a", 5), at("b", 3, damaged), at("c", 1)}, Days: 2, Lives: true}, "a b c", 3, 0,
		},
		"those of users are not the period's": {Holdings{Backups: []Backup{at("a", 3), at("b", 1, manual), at("c", 0.5)}, Days: 2}, "a c", 2, 0},
		"WAL that is gone does not come back": {Holdings{Backups: []Backup{at("a", 5, alone), at("b", 1, alone), at("c", 0.5)}, Days: 2, Lives: true}, "b c", 1, 0},
		"but may be its first":                {Holdings{Backups: []Backup{at("a", 5), at("b", 3, manual), at("c", 0.5)}, Days: 2}, "b c", 2, 0},
	} {
		k := c.h.Keep(noon)
		if got := strings.Join(k.Labels, " "); got != c.want || k.Archive != c.archive || len(k.Expired) != c.expired {
			t.Errorf("%s: keeps %q, WAL of %d, %d over; want %q, %d, %d", name, got, k.Archive, len(k.Expired), c.want, c.archive, c.expired)
		}
	}
}

func TestEarliestRestorable(t *testing.T) {
	day := func(days float64) time.Time { return noon.Add(-time.Duration(days * float64(Day))) }
	for name, c := range map[string]struct {
		all  []Backup
		days int
		want time.Time // zero: none
	}{
		"none":                                         {nil, 7, time.Time{}},
		"no period":                                    {[]Backup{at("a", 1)}, 0, time.Time{}},
		"the first one":                                {[]Backup{at("a", 1)}, 7, day(1)},
		"the whole period":                             {[]Backup{at("b", 3), at("a", 9)}, 7, day(7)},
		"not by a user's":                              {[]Backup{at("b", 1), at("a", 3, manual)}, 7, day(1)},
		"a user's before the period":                   {[]Backup{at("b", 1), at("a", 8, manual)}, 7, day(7)},
		"the first is damaged":                         {[]Backup{at("b", 1), at("a", 3, damaged)}, 7, day(1)},
		"all is damaged":                               {[]Backup{at("b", 1, needs("a")), at("a", 3, damaged)}, 7, time.Time{}},
		"WAL before is gone":                           {[]Backup{at("b", 1), at("a", 9, alone)}, 7, day(1)},
		"it begins in a gap":                           {[]Backup{at("b", 6, heals(8)), at("a", 9)}, 7, day(6)},
		"a gap in the middle":                          {[]Backup{at("b", 3, heals(4)), at("a", 9)}, 7, day(7)},
		"a gap that a damaged backup ended":            {[]Backup{at("d", 1), at("c", 2, heals(3), damaged), at("a", 9)}, 7, day(7)},
		"a floor in a gap that a damaged one ended":    {[]Backup{at("d", 1), at("c", 5, heals(8), damaged), at("a", 9)}, 7, day(1)},
		"a floor after a gap that a damaged one ended": {[]Backup{at("d", 1), at("c", 8, heals(8.5), damaged), at("a", 9)}, 7, day(1)},
		"a gap of which nobody knows how long it is":   {[]Backup{at("b", 3, func(b *Backup) { b.Heals = true }), at("a", 9)}, 7, day(3)},
	} {
		got, ok := EarliestRestorable(c.all, c.days, noon)
		if !got.Equal(c.want) || ok == c.want.IsZero() {
			t.Errorf("%s: %s, %t, want %s", name, got, ok, c.want)
		}
	}
}

// history is a database that is backed up, and a repository from which is removed what is not kept.
type history struct {
	Holdings
	random *rand.Rand
	now    time.Time
	inside []Backup  // what the repository has
	wal    time.Time // from then on it has all WAL
	next   int
	steps  []string
}

func (h *history) step(format string, args ...any) {
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

func (h *history) backUp(automated bool) {
	h.next++
	b := Backup{Label: fmt.Sprintf("b%03d", h.next), Kind: Full, Automated: automated, Major: 15, Start: h.now, Stop: h.now}
	if n := len(h.inside); n > 0 && !NeedsFull(h.Backups, 15, h.now) {
		b.Kind, b.Needs = Incremental, append(slices.Clone(h.inside[n-1].Needs), h.inside[n-1].Label)
	}
	h.inside = append(h.inside, b)
	if h.random.IntN(8) == 0 {
		h.step("%s is made, and cancelled", b.Label)
		return
	}
	h.Backups = append(h.Backups, b)
	h.Snapshots = append(h.Snapshots, Snapshot{Name: b.Label, Label: b.Label, State: Available, Automated: automated, Taken: h.now})
	h.step("%s (%s), automated %t", b.Label, b.Kind, automated)
}

// tidy does what Tidy and the engine do.
func (h *history) tidy() {
	k := h.Keep(h.now)
	h.Backups = k.Backups
	h.Snapshots = slices.DeleteFunc(h.Snapshots, func(s Snapshot) bool {
		return slices.ContainsFunc(k.Expired, func(e Snapshot) bool { return e.Name == s.Name })
	})
	h.inside = slices.DeleteFunc(h.inside, func(b Backup) bool { return !slices.Contains(k.Labels, b.Label) })
	if n := len(h.inside) - k.Archive; n >= 0 && len(h.inside) > 0 && h.inside[n].Start.After(h.wal) {
		h.wal = h.inside[n].Start
	}
	h.step("tidied: %d backups, WAL from %s", len(h.inside), h.wal.Format(time.DateTime))
}

// check fails if something that is promised cannot be restored.
func (h *history) check(t *testing.T) {
	t.Helper()
	whole := func(label string) bool {
		n := slices.IndexFunc(h.inside, func(b Backup) bool { return b.Label == label })
		return n >= 0 && !slices.ContainsFunc(h.inside[n].Needs, func(need string) bool {
			return !slices.ContainsFunc(h.inside, func(b Backup) bool { return b.Label == need })
		})
	}
	for _, s := range h.Snapshots {
		if !whole(s.Label) {
			t.Fatalf("snapshot %s cannot be restored:\n%s", s.Name, strings.Join(h.steps, "\n"))
		}
	}
	for _, label := range h.Used {
		if !whole(label) {
			t.Fatalf("the restore of %s ends:\n%s", label, strings.Join(h.steps, "\n"))
		}
	}
	earliest, ok := EarliestRestorable(h.Backups, h.Days, h.now)
	if !ok {
		return
	}
	for moment := earliest; !moment.After(h.now); moment = moment.Add(5 * time.Hour) {
		if b, ok := Base(h.Backups, moment); !ok || !whole(b.Label) || b.Start.Before(h.wal) {
			t.Fatalf("%s of %s to now cannot be restored:\n%s", moment, earliest, strings.Join(h.steps, "\n"))
		}
	}
}

// TestWhatIsPromisedIsKept: whatever happens to a database and its snapshots, what is promised can be
// restored, and what nobody needs goes.
func TestWhatIsPromisedIsKept(t *testing.T) {
	for seed := range uint64(60) {
		h := &history{random: rand.New(rand.NewPCG(seed, 1)), now: noon, Holdings: Holdings{Lives: true, Days: 3}}
		for range 150 {
			h.now = h.now.Add(time.Duration(h.random.IntN(1200)) * time.Minute)
			switch h.random.IntN(12) {
			case 0, 1, 2, 3:
				h.backUp(h.Days > 0)
			case 4:
				h.backUp(false)
			case 5:
				if n := len(h.Snapshots); n > 0 {
					n = h.random.IntN(n)
					if !h.Snapshots[n].Automated {
						h.step("snapshot %s is deleted", h.Snapshots[n].Name)
						h.Snapshots = slices.Delete(h.Snapshots, n, n+1)
					}
				}
			case 6:
				h.Days = h.random.IntN(6)
				h.step("%d days", h.Days)
			case 7:
				if n := len(h.Backups); n > 0 {
					h.Used = append(h.Used, h.Backups[h.random.IntN(n)].Label)
					h.step("%s is restored", h.Used[len(h.Used)-1])
				}
			case 8:
				h.Used = nil
				h.step("restores end")
			default:
				h.tidy()
			}
			h.check(t)
		}
		h.Lives, h.Days, h.Snapshots, h.Used = false, 0, nil, nil
		if h.tidy(); len(h.inside) > 0 || len(h.Backups) > 0 {
			t.Fatalf("what nobody needs is left: %+v\n%s", h.inside, strings.Join(h.steps, "\n"))
		}
	}
}

func TestInDoubt(t *testing.T) {
	all := []Backup{{Label: "F"}, {Label: "I1", Needs: []string{"F"}}, {Label: "I2", Needs: []string{"F", "I1"}, Damaged: "a page"}, {Label: "G"}}
	for n, want := range []bool{true, true, false, false} {
		if got := InDoubt(all, all[n]); got != want {
			t.Errorf("%s: %t", all[n].Label, got)
		}
	}
}

// TestWhatWasFound stays: an automated backup for the longest retention period, another one always.
func TestWhatWasFound(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	h := Holdings{Backups: []Backup{
		{Label: "a", Kind: Full, Automated: true, Stop: at.Add(-time.Hour), Found: at},
		{Label: "b", Kind: Full, Stop: at.Add(-time.Minute), Found: at},
	}}
	if k := h.Keep(at.Add(34 * Day)); !slices.Equal(k.Labels, []string{"a", "b"}) || len(k.Alone) > 0 || k.Archive != 2 {
		t.Errorf("%+v", k)
	}
	if k := h.Keep(at.Add(1000 * Day)); !slices.Equal(k.Labels, []string{"b"}) {
		t.Errorf("%+v", k)
	}
}

// TestALongChain ends with a full backup, so that what it needs can be recorded.
func TestALongChain(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	all := []Backup{{Label: "f", Kind: Full, Major: 15, Stop: at}}
	n := 0
	for ; !NeedsFull(all, 15, at); n++ {
		last := all[len(all)-1]
		all = append(all, Backup{
			Label: fmt.Sprint(n), Kind: Incremental, Major: 15, Stop: last.Stop.Add(time.Second), Needs: append(slices.Clone(last.Needs), last.Label),
		})
	}
	if n != mostNeeds {
		t.Errorf("%d incremental backups in a chain", n)
	}
}

// TestAClockThatJumps costs no backup of a database that lives, and the next days one each.
func TestAClockThatJumps(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	h := Holdings{Days: 3, Lives: true}
	add := func(at time.Time) {
		b := Backup{Label: at.Format(time.DateOnly), Kind: Full, Automated: true, Stop: at}
		h.Backups = append(h.Backups, b)
		h.Snapshots = append(h.Snapshots, Snapshot{Automated: true, State: Available, Label: b.Label, Taken: at})
	}
	for n := range 4 {
		add(at.Add(time.Duration(n-3) * Day))
	}
	for _, now := range []time.Time{at.Add(time.Hour), at.Add(1000 * Day), at.Add(-1000 * Day)} {
		if k := h.Keep(now); len(k.Labels) != 4 || len(k.Alone) > 0 || len(k.Expired) > 1 {
			t.Errorf("%s: %+v", now, k)
		}
	}
	add(at.Add(1000 * Day))
	if k := h.Keep(at.Add(1000 * Day)); len(k.Labels) != 4 || len(k.Expired) != 2 {
		t.Errorf("%+v", k)
	}
	h.Lives = false
	if k := h.Keep(at.Add(1004 * Day)); len(k.Labels) != 1 {
		t.Errorf("%+v", k)
	}
}

// TestPromise: what is told must hold.
func TestPromise(t *testing.T) {
	day := func(days float64) time.Time { return noon.Add(-time.Duration(days * float64(Day))) }
	latest := noon.Add(-time.Minute)
	for name, c := range map[string]struct {
		all         []Backup
		latest      time.Time
		from, until time.Time // zero: nothing is promised
	}{
		"none":                          {nil, latest, time.Time{}, time.Time{}},
		"one":                           {[]Backup{at("a", 1)}, latest, day(1), latest},
		"no WAL":                        {[]Backup{at("a", 1)}, time.Time{}, time.Time{}, time.Time{}},
		"WAL of before":                 {[]Backup{at("a", 1)}, day(2), time.Time{}, time.Time{}},
		"the newest is damaged":         {[]Backup{at("b", 1, damaged), at("a", 3)}, latest, day(3), latest},
		"what that needs is in doubt":   {[]Backup{at("b", 1, damaged, needs("a")), at("a", 3)}, latest, time.Time{}, time.Time{}},
		"another one is not":            {[]Backup{at("c", 1, damaged, needs("b")), at("b", 2), at("a", 3)}, latest, day(3), latest},
		"what ended a gap is damaged":   {[]Backup{at("b", 1, heals(2), damaged), at("a", 3)}, latest, time.Time{}, time.Time{}},
		"what ended a gap is in doubt":  {[]Backup{at("c", 0.5, damaged, needs("b")), at("b", 1, heals(2)), at("a", 3)}, latest, time.Time{}, time.Time{}},
		"a backup after it is not":      {[]Backup{at("c", 0.5), at("b", 1, heals(2), damaged), at("a", 3)}, latest, day(3), latest},
		"the newest moment is in a gap": {[]Backup{at("b", 1, heals(2)), at("a", 3)}, day(1.5), time.Time{}, time.Time{}},
	} {
		if from, until := Promise(c.all, 7, c.latest, noon); !from.Equal(c.from) || !until.Equal(c.until) {
			t.Errorf("%s: from %s until %s, want %s, %s", name, from, until, c.from, c.until)
		}
	}
}
