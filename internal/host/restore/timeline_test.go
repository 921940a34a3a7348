package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/model/lsn"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/sourcetest"
)

// TestForks: a database went back to an earlier position, and went on from there. What it has given
// up can only be had by its timeline.
func TestForks(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Keep("a")
	s.Backup("one")
	b := s.Keep("b")
	given := s.Keep("given up")
	late := s.Keep("given up later")
	s.Backup("lost")
	s.Archive()
	s.Promote("one", b.End)
	c := s.Keep("c")
	s.Archive()
	s.Backup("two")
	d := s.Keep("d")
	s.Archive()

	until := func(label string, at time.Time) backup.Restore {
		return backup.Restore{Label: label, Target: backup.Target{Until: at}}
	}
	onFirst := until("one", given.At)
	onFirst.Timeline = 1
	for _, tt := range depth.Some(t, 4, []struct {
		name string
		from backup.Restore
		rows string
	}{
		{"before the fork", until("one", b.At), "a b"},
		{"after the fork", until("one", c.At), "a b c"},
		{"between two commits after it", until("one", d.At.Add(-time.Microsecond)), "a b c"},
		{"the newest", backup.Restore{Label: "one", Target: backup.Target{Newest: true}}, "a b c d"},
		{"from a backup after the fork", until("two", d.At), "a b c d"},
		{"the end of a backup after the fork", backup.Restore{Label: "two"}, "a b c"},
		{"the end of the backup that was given up", backup.Restore{Label: "lost"}, "a b given up given up later"},
		{"what was given up, by its timeline", onFirst, "a b given up"},
	}) {
		t.Run(tt.name, func(t *testing.T) {
			if rows, _ := s.restored(t, tt.from); rows != tt.rows {
				t.Errorf("it has %q, want %q", rows, tt.rows)
			}
		})
	}
	noSuch, notBack := until("one", c.At), until("two", c.At)
	noSuch.Timeline, notBack.Timeline = 7, 1
	for _, tt := range []struct {
		name   string
		from   backup.Restore
		reason string
	}{
		{"what was given up", until("one", given.At), "lies on a branch that was abandoned at " + clock(b.At)},
		{"after all that was given up", until("one", late.At.Add(time.Millisecond)), "lies on a branch that was abandoned at " + clock(b.At)},
		{"a timeline that never was", noSuch, "the archive knows no timeline 7"},
	} {
		t.Run(tt.name, func(t *testing.T) { s.refused(t, tt.from, tt.reason) })
	}
	t.Run("the timeline before the backup's", func(t *testing.T) { s.refused(t, notBack, "timeline 1 does not go back to the backup two") })
}

// TestABackupThatEndedOnABranchThatWasLeft: a primary that was cut off ended it after its successor had
// begun another timeline. Its own moment can be had, and nothing later.
func TestABackupThatEndedOnABranchThatWasLeft(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Keep("a")
	s.Backup("one")
	s.Backup("cut")
	label, err := s.User.ReadFile(filepath.Join(s.Dir, "backups", "cut", "backup_label"))
	s.Must(err)
	s.Keep("given up")
	s.Archive()
	s.Promote("one", mustLSN(t, string(labelStart.FindSubmatch(label)[1])))
	b := s.Keep("b")
	s.Archive()
	if rows, _ := s.restored(t, backup.Restore{Label: "cut"}); rows != "a" {
		t.Errorf("it has %q", rows)
	}
	s.refused(t, backup.Restore{Label: "cut", Target: backup.Target{Until: b.At}}, "choose another backup")
}

// TestManyTimelinesOfWhichNothingIsThere: many promotions have archived nothing before the next one.
func TestManyTimelinesOfWhichNothingIsThere(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Backup("one")
	b := s.Keep("b")
	s.Archive()
	s.Promote("one", b.End, func(data string) {
		for n := range 12 {
			s.Must(s.User.ReplaceFile(filepath.Join(data, "pg_wal", fmt.Sprintf("%08X.history", n+2)), []byte("# taken\n"), 0o600))
		}
	})
	c := s.Keep("c")
	s.Archive()
	for name, target := range map[string]backup.Target{"the newest": {Newest: true}, "a moment": {Until: c.At}} {
		if rows, _ := s.restored(t, backup.Restore{Label: "one", Target: target}); rows != "b c" {
			t.Errorf("%s has %q", name, rows)
		}
	}
}

// TestMissingWAL: what cannot be had ends the archive.
func TestMissingWAL(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Backup("one")
	b := s.Keep("b")
	s.Archive()
	missing := sourcetest.Ask[string](s.Source, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
	s.Keep("c")
	s.Archive()
	d := s.Keep("d")
	s.Archive()
	s.Must(os.Remove(filepath.Join(s.Dir, "archive", missing)))
	s.refused(t, backup.Restore{Label: "one", Target: backup.Target{Until: d.At}}, "WAL file "+missing+" is missing in the archive, which goes on with")
	if rows, _ := s.restored(t, backup.Restore{Label: "one", Target: backup.Target{LSN: b.End}}); rows != "b" {
		t.Errorf("it has %q", rows)
	}
	all, err := filepath.Glob(filepath.Join(s.Dir, "archive", "0*"))
	s.Must(err)
	for _, file := range all {
		s.Must(os.Remove(file))
	}
	s.refused(t, backup.Restore{Label: "one"}, "WAL that makes the backup one consistent is missing")
}

// TestTheForksThatWerePassedAreLookedAt, however many came later.
func TestTheForksThatWerePassedAreLookedAt(t *testing.T) {
	var forks []fork
	for n := 30; n > 0; n-- {
		forks = append(forks, fork{Timeline: n, At: lsn.LSN(n * 100)})
	}
	for end, want := range map[lsn.LSN][]int{50: nil, 100: {29}, 350: {27, 28, 29}, 9999: {0, 1, 2, 3, 4, 5, 6, 7}} {
		if got := followed(forks, end); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v, want %v", end, got, want)
		}
	}
}

// TestWayBack reads history files.
func TestWayBack(t *testing.T) {
	const text = "1\t0/3000000\tno recovery target specified\n\n2\t0/5000000\tbefore 2026-11-24\n3\t0/7000000\tx\n"
	for _, tt := range []struct {
		first int
		from  string
		way   []fork
		back  bool
	}{
		{1, "0/2000028", []fork{{3, 0x7000000}, {2, 0x5000000}, {1, 0x3000000}}, true},
		{1, "0/3000028", nil, false},
		{2, "0/4000028", []fork{{3, 0x7000000}, {2, 0x5000000}}, true},
		{5, "0/4000028", nil, false},
	} {
		from := mustLSN(t, tt.from)
		if way, back := wayBack(text, tt.first, from); back != tt.back || !slices.Equal(way, tt.way) {
			t.Errorf("from %d at %s: %v, %v", tt.first, tt.from, way, back)
		}
	}
	if way, back := wayBack("nonsense\n1\n", 1, 0); back || way != nil {
		t.Error(fmt.Sprint(way))
	}
}
