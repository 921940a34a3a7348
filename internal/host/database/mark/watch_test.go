package mark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

// watching is a Watch of a database on its second timeline, with a backup in the first.
func watching(t *testing.T, have ...Segment) *Watch {
	t.Helper()
	w := &Watch{Around: Around{
		Database: "db-1", Log: slog.New(slog.DiscardHandler), Why: func() string { return "" },
		Forget: func([]string) error { return nil },
	}}
	w.begin(epoch{
		repository: "main", timeline: 2, history: History{{1, at(5, 100)}, {2, 0}}, listed: time.Now(), based: time.Now(),
		base: &Backup{Timeline: 1, Start: at(3, 40), Stop: at(4, 10)},
	})
	for _, f := range have {
		w.Wrote("main", f.String())
	}
	return w
}

func pending(ends ...lsn.LSN) (all []member.Mark) {
	for n, end := range ends {
		all = append(all, member.Mark{At: time.Unix(int64(n), 0), Timeline: 2, LSN: end})
	}
	return all
}

// TestAServerThatArchivesNothing says so, until it is restarted.
func TestAServerThatArchivesNothing(t *testing.T) {
	w := watching(t)
	w.Backlog = func() (Backlog, error) { return Backlog{}, nil }
	now := time.Now()
	says := func(archives bool, after time.Duration) member.Archived {
		w.backlog.off(archives, now.Add(after))
		w.lookBack(now.Add(after))
		return *w.Archived()
	}
	if a := says(true, 0); a.Failing != "" {
		t.Errorf("it archives, and says %q", a.Failing)
	}
	if a := says(false, 10*time.Second); a.Failing != Off || !a.Since.Equal(now.Add(10*time.Second)) {
		t.Errorf("it does not archive, and says %q since %s", a.Failing, a.Since)
	}
	if a := says(false, 20*time.Second); a.Failing != Off || !a.Since.Equal(now.Add(10*time.Second)) {
		t.Errorf("it still does not archive, and says %q since %s", a.Failing, a.Since)
	}
	if a := says(true, 30*time.Second); a.Failing != "" || !a.Since.IsZero() {
		t.Errorf("it was restarted, and says %q", a.Failing)
	}
}

func TestAMarkNeedsAllWALSinceTheBackup(t *testing.T) {
	marks := pending(at(5, 200), at(6, 1), at(7, 0), at(7, 1))
	for name, c := range map[string]struct {
		have []Segment
		want int
	}{
		"nothing":             {nil, -1},
		"all but the fork":    {[]Segment{{1, 3}, {1, 4}}, -1},
		"up to the fork":      {[]Segment{{1, 3}, {1, 4}, {2, 5}}, 0},
		"up to the newest":    {[]Segment{{1, 3}, {1, 4}, {2, 5}, {2, 6}, {2, 7}}, 3},
		"up to a file's end":  {[]Segment{{1, 3}, {1, 4}, {2, 5}, {2, 6}}, 2},
		"not the first":       {[]Segment{{1, 4}, {2, 5}, {2, 6}, {2, 7}}, -1},
		"not one in between":  {[]Segment{{1, 3}, {1, 4}, {2, 5}, {2, 7}}, 0},
		"of another timeline": {[]Segment{{1, 3}, {1, 4}, {1, 5}, {1, 6}}, -1},
	} {
		w := watching(t, c.have...)
		w.epoch.pending = marks
		if got := w.newestWhole(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		w.epoch.base.Stop = at(9, 0)
		if got := w.newestWhole(); got != -1 {
			t.Errorf("%s: %d before the end of the backup", name, got)
		}
		w.epoch.base = nil
		if got := w.newestWhole(); got != -1 {
			t.Errorf("%s: %d without a backup", name, got)
		}
	}
	w := watching(t)
	w.Wrote("other", Segment{2, 5}.String())
	if _, found := w.stock.Newest(2); found {
		t.Error("a file in another repository counts")
	}
}

func TestAnotherServersFilesCountForNothing(t *testing.T) {
	h := History{{1, at(5, 100)}, {2, 0}}
	from, to := Point{1, at(3, 40)}, Point{2, at(6, 1)}
	for _, c := range []struct {
		file         Segment
		needed, left bool
	}{
		{Segment{1, 2}, false, false}, {Segment{1, 3}, true, false}, {Segment{1, 4}, true, false}, {Segment{1, 5}, false, true},
		{Segment{2, 4}, false, false}, {Segment{2, 5}, true, false}, {Segment{2, 6}, true, false}, {Segment{2, 7}, false, false}, {Segment{3, 5}, false, true},
	} {
		if h.needs([]Segment{c.file}, from, to) != c.needed || h.left(c.file) != c.left {
			t.Errorf("%s: needed %v, left %v", c.file, !c.needed, !c.left)
		}
	}
}

func TestMarksAreKeptInTheRepository(t *testing.T) {
	s, err := store.OpenDirectory(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := readBook(t.Context(), s, "db-1")
	if err != nil || len(b.Marks) != 0 {
		t.Fatalf("%+v, %v", b, err)
	}
	for n := range uint64(100) {
		m := member.Mark{At: time.Unix(int64(n), 0).UTC(), Timeline: 1 + int(n)/90, LSN: lsn.LSN(n)}
		if b, err = b.write(t.Context(), s, "db-1", m); err != nil {
			t.Fatal(err)
		}
	}
	b, err = readBook(t.Context(), s, "db-1")
	if err != nil || len(b.Marks) != recentMarks+1 { // and the first of the hour
		t.Fatalf("%d marks, %v", len(b.Marks), err)
	}
	for _, c := range []struct {
		h    History
		want lsn.LSN
	}{
		{History{{1, 0}}, 89}, {History{{1, 80}, {2, 0}}, 99}, {History{{1, 60}, {3, 0}}, 60}, {History{{1, 30}, {3, 0}}, 0}, {History{{7, 0}}, 0},
	} {
		if got := b.newest(c.h); got.LSN != c.want {
			t.Errorf("%v: %v, want %s", c.h, got, c.want)
		}
	}
	if _, err := s.Put(t.Context(), Key("db-1"), errorReader{}); err == nil {
		t.Error("half a book was written")
	}
}

// Of a long time there are few marks, and never one that is far away, nor a book that is too long.
func TestOldMarksAreSparse(t *testing.T) {
	var all []member.Mark
	began := time.Unix(1_700_000_000, 0)
	const step = 7 * time.Minute
	for n := range int(60 * 24 * time.Hour / step) {
		all = sparse(append(all, member.Mark{At: began.Add(time.Duration(n) * step), Timeline: 1, LSN: lsn.LSN(n)}))
	}
	if text, err := json.Marshal(book{Marks: all}); err != nil || len(text) > mostBook/2 {
		t.Errorf("%d marks have %d bytes, %v", len(all), len(text), err)
	}
	newest := all[len(all)-1].At
	for n, m := range all[1:] {
		most := 2 * quarterly
		if newest.Sub(m.At) < 24*time.Hour-quarterly {
			most = 2 * hourly
		}
		if gap := m.At.Sub(all[n].At); gap <= 0 || gap > most {
			t.Errorf("%s lie between %s and %s", gap, all[n].At, m.At)
		}
	}
	if oldest := newest.Sub(all[0].At); oldest > longest || oldest < longest-24*time.Hour {
		t.Errorf("the oldest mark is %s old", oldest)
	}
}

// What was archived may be gone again: then a mark that was reported before does not count.
func TestLostWALTakesAMarkBack(t *testing.T) {
	at := func(n int64, number uint64) member.Mark {
		return member.Mark{At: time.Unix(n, 0), Timeline: 1, LSN: lsn.LSN(number*SegmentSize + 100)}
	}
	w := &Watch{epoch: epoch{history: History{{1, 0}}, book: book{Marks: []member.Mark{at(1, 3), at(2, 4), at(3, 5), at(4, 7)}}}}
	lost := Segment{1, 5}.String()
	if got := w.until(lost, at(4, 7)); got != at(2, 4) {
		t.Errorf("%+v", got)
	}
	if got := w.until(lost, at(1, 3)); got != at(1, 3) {
		t.Errorf("%+v", got)
	}
	if got := w.until("", at(4, 7)); got != at(4, 7) {
		t.Errorf("%+v", got)
	}
	if got := w.until(Segment{1, 2}.String(), at(4, 7)); !got.At.IsZero() {
		t.Errorf("%+v", got)
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("broken off") }

func TestWhatWaits(t *testing.T) {
	var l backlog
	now := time.Unix(1000, 0)
	for n, c := range []struct {
		ready []string
		since int64 // 0: nothing waits
	}{
		{nil, 0}, {[]string{"a"}, 1001}, {[]string{"a", "b"}, 1001}, {[]string{"a", "b", "c"}, 1001},
		{[]string{"a", "c"}, 1004}, {[]string{"a", "c", "d"}, 1004}, {[]string{"c", "d"}, 1006}, {nil, 0}, {[]string{"c"}, 1008},
	} {
		since := l.waits(Backlog{Ready: c.ready}, now.Add(time.Duration(n)*time.Second))
		if since.IsZero() != (c.since == 0) || c.since != 0 && since.Unix() != c.since {
			t.Errorf("%d: since %d, want %d", n, since.Unix(), c.since)
		}
	}
	// What is given up is not archived.
	first := l.waits(Backlog{Ready: []string{"d", "e"}}, now)
	for n, b := range []Backlog{{Ready: []string{"e"}, Broken: []string{"d"}}, {Ready: []string{"f", "g"}, Broken: []string{"d", "e"}}} {
		if since := l.waits(b, now.Add(time.Duration(n+1)*time.Hour)); !since.Equal(first) {
			t.Errorf("%d: since %s, want %s", n, since, first)
		}
	}
	if since := l.waits(Backlog{Ready: []string{"g"}, Broken: []string{"d", "e"}}, now.Add(9*time.Hour)); since.Equal(first) {
		t.Error("a file that was archived is none that goes on")
	}
}

func TestWhatIsLostToTheArchive(t *testing.T) {
	name := func(timeline int, number uint64) string { return Segment{timeline, number}.String() }
	whole := []Segment{{1, 3}, {1, 4}, {2, 5}, {2, 6}}
	for what, c := range map[string]struct {
		have   []Segment
		b      Backlog
		want   string
		forget []string
	}{
		"nothing":                      {whole, Backlog{}, "", nil},
		"what waits":                   {append(whole[:3:3], Segment{2, 7}), Backlog{Ready: []string{name(2, 6)}}, "", nil},
		"what was given up":            {append(whole[:3:3], Segment{2, 7}), Backlog{Broken: []string{name(2, 6)}}, name(2, 6), nil},
		"what another host gave up":    {append(whole[:3:3], Segment{2, 7}), Backlog{}, name(2, 6), nil},
		"what was given up long ago":   {whole[:3:3], Backlog{Broken: []string{name(1, 2), name(2, 6)}}, name(2, 6), []string{name(1, 2)}},
		"what came all the same":       {whole, Backlog{Broken: []string{name(1, 4), name(2, 6)}}, "", []string{name(1, 4), name(2, 6)}},
		"what an old branch gave up":   {whole, Backlog{Broken: []string{name(1, 5), name(3, 1)}}, "", []string{name(1, 5), name(3, 1)}},
		"another server's":             {whole, Backlog{Foreign: []string{name(1, 2), name(2, 6)}}, name(2, 6), []string{name(1, 2)}},
		"another server's history":     {whole, Backlog{Foreign: []string{"00000002.history", "00000003.history"}}, "00000002.history", []string{"00000003.history"}},
		"the history of the backup":    {whole, Backlog{Foreign: []string{"00000001.history"}}, "", []string{"00000001.history"}},
		"what no primary has archived": {[]Segment{{1, 3}, {2, 5}, {2, 6}}, Backlog{}, name(1, 4), nil},
	} {
		w := watching(t, c.have...)
		var forgotten []string
		w.Forget = func(names []string) error { forgotten = names; return nil }
		now := w.epoch.listed
		for range 2 {
			now = now.Add(backlogEvery)
			_ = w.broken(c.b, now)
		}
		if w.epoch.relist { // and so it is
			w.epoch.listed = now.Add(time.Second)
		}
		if got := w.broken(c.b, now.Add(backlogEvery)); got != c.want || !slices.Equal(forgotten, c.forget) {
			t.Errorf("%s: %q, forgets %q; want %q, %q", what, got, forgotten, c.want, c.forget)
		}
	}
}

// TestWhatComesAfterTheListIsNotLost: the primary before sent it, and nobody has told of it.
func TestWhatComesAfterTheListIsNotLost(t *testing.T) {
	w := watching(t, Segment{1, 3}, Segment{2, 5}, Segment{2, 6})
	now := w.epoch.listed
	for range 5 {
		now = now.Add(backlogEvery)
		if got := w.broken(Backlog{}, now); got != "" {
			t.Fatalf("%s is lost by a list of before", got)
		}
	}
	if !w.epoch.relist {
		t.Fatal("nobody lists anew")
	}
	w.List = func(_ context.Context, _ string, tell func(string)) error {
		for _, s := range []Segment{{1, 3}, {1, 4}, {2, 5}, {2, 6}} {
			tell(s.String())
		}
		return nil
	}
	if err := w.learnAll(t.Context(), now); err != nil || w.epoch.relist {
		t.Fatalf("listed anew: %v, %v", !w.epoch.relist, err)
	}
	for range 3 {
		now = now.Add(backlogEvery)
		if got := w.broken(Backlog{}, now); got != "" {
			t.Errorf("%s is lost", got)
		}
	}
}

// TestWhatIsToldIsShared: it stays the same one until something else is told.
func TestWhatIsToldIsShared(t *testing.T) {
	w := watching(t)
	w.Backlog = func() (Backlog, error) { return Backlog{Ready: []string{Segment{2, 5}.String()}}, nil }
	now := time.Now()
	w.lookBack(now)
	first := w.Archived()
	if first == nil || first.Waiting != SegmentSize || first.Failing != "" {
		t.Fatalf("%+v", first)
	}
	w.lookBack(now.Add(backlogEvery))
	if w.Archived() != first {
		t.Error("it is another one")
	}
	w.lookBack(now.Add(failsAfter))
	if a := w.Archived(); a == first || a.Failing == "" || !a.Since.Equal(now) || first.Failing != "" {
		t.Errorf("%+v after %+v", a, first)
	}
	mark := member.Mark{At: now, LSN: 7}
	w.tell(func(a *member.Archived) { a.Restorable = mark })
	for range 2 {
		w.leave()
	}
	if w.Archived() != nil {
		t.Error("no primary has an archive")
	}
	if last := w.Last(time.Now()); last == nil || *last != (member.Archived{Restorable: mark}) || last != w.Last(time.Now()) {
		t.Errorf("%+v is left of the time as primary", last)
	}
	if last := w.Last(time.Now().Add(2 * lastFor)); last != nil {
		t.Errorf("%+v is told for ever", last)
	}
}

// TestAnAbsentRepositoryIsAskedAgain, and what is not known is not promised.
func TestAnAbsentRepositoryIsAskedAgain(t *testing.T) {
	w := watching(t)
	w.epoch.listed, w.epoch.based = time.Time{}, time.Time{}
	files, err := store.OpenDirectory(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("away")
	w.Objects = func(string) (store.Objects, error) { return nil, away }
	now := time.Now()
	if err := w.learnAll(t.Context(), now); !errors.Is(err, away) {
		t.Fatal(err)
	}
	w.Objects = func(string) (store.Objects, error) { return files, nil }
	w.List = func(_ context.Context, _ string, f func(string)) error {
		for _, s := range []Segment{{1, 3}, {1, 4}, {2, 5}} {
			f(s.String())
		}
		f("00000002.history")
		return nil
	}
	asked := 0
	w.Backups = func(context.Context, string) ([]Backup, error) {
		asked++
		return []Backup{
			{Timeline: 1, Start: at(3, 0), Stop: at(3, 50)}, {Timeline: 2, Start: at(5, 0), Stop: at(5, 50)},
			// The old primary ended it after it was replaced.
			{Timeline: 1, Start: at(5, 90), Stop: at(5, 101)},
		}, nil
	}
	for n := range 3 {
		if err := w.learnAll(t.Context(), now.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 || w.epoch.base.Start != at(5, 0) || w.epoch.listed.IsZero() {
		t.Errorf("asked %d times, %+v", asked, w.epoch)
	}
	w.Backed()
	if err := w.learnAll(t.Context(), now.Add(3*time.Second)); err != nil || asked != 2 {
		t.Errorf("after a backup: asked %d times, %v", asked, err)
	}
	w.tell(func(a *member.Archived) { a.Broken = "000000020000000000000006" })
	if err := w.learnAll(t.Context(), now.Add(4*time.Second+idleEvery)); err != nil || asked != 3 {
		t.Errorf("while WAL is missing: asked %d times, %v", asked, err)
	}
}

func TestMarksThatWaitAreFew(t *testing.T) {
	var all []member.Mark
	for n := range 1000 {
		all = append(thin(all), member.Mark{LSN: lsn.LSN(n)})
	}
	if len(all) > mostPending || all[len(all)-1].LSN != 999 {
		t.Error(fmt.Sprint(len(all), all[len(all)-1]))
	}
	for n := 1; n < len(all); n++ {
		if all[n].LSN <= all[n-1].LSN {
			t.Fatalf("%d after %d", all[n].LSN, all[n-1].LSN)
		}
	}
}

// TestWhenAFileIsEnded, so that a mark does not wait for long.
func TestWhenAFileIsEnded(t *testing.T) {
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	mark := func(after time.Duration, timeline int, end lsn.LSN) member.Mark {
		return member.Mark{At: noon.Add(after), Timeline: timeline, LSN: end}
	}
	first := mark(0, 2, at(5, 100))
	for name, c := range map[string]struct {
		timeline int
		began    time.Duration // before now
		pending  []member.Mark
		want     bool
	}{
		"the first one":                     {1, 0, []member.Mark{mark(0, 1, at(5, 100))}, false},
		"the first one after a promotion":   {2, 0, []member.Mark{first}, true},
		"a later one":                       {2, time.Minute, []member.Mark{first}, false},
		"another one, soon":                 {2, time.Minute, []member.Mark{first, mark(beatEvery, 2, at(5, 200))}, false},
		"another one, later":                {2, time.Minute, []member.Mark{first, mark(endAfter, 2, at(5, 200))}, true},
		"another one, at the end":           {2, time.Minute, []member.Mark{first, mark(endAfter, 2, at(6, 0))}, true},
		"another one, in another file":      {2, time.Minute, []member.Mark{first, mark(endAfter, 2, at(6, 1))}, false},
		"another one, on another timeline":  {2, time.Minute, []member.Mark{mark(0, 1, at(5, 100)), mark(endAfter, 2, at(5, 200))}, false},
		"many, of which few are in the way": {2, time.Minute, []member.Mark{first, mark(time.Minute, 2, at(6, 1)), mark(time.Minute+endAfter, 2, at(6, 9))}, true},
	} {
		e := epoch{timeline: c.timeline, began: noon.Add(-c.began), pending: c.pending}
		if got := e.ends(noon); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAPrimaryThatWasPromotedCommits soon and often, so that moments are told from those of the one
// before.
func TestAPrimaryThatWasPromotedCommits(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		e    epoch
		want bool
	}{
		"nothing was committed":  {epoch{}, false},
		"committed just now":     {epoch{timeline: 1, began: now.Add(-beatEvery), written: now.Add(-beatEvery)}, true},
		"committed long ago":     {epoch{timeline: 1, began: now.Add(-time.Hour), written: now.Add(-idleEvery)}, false},
		"promoted just now":      {epoch{timeline: 2, began: now.Add(-beatEvery), written: now.Add(-beatEvery)}, false},
		"promoted some time ago": {epoch{timeline: 2, began: now.Add(-freshFor), written: now.Add(-beatEvery)}, true},
	} {
		if got := c.e.rests(now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
