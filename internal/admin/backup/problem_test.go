package backup

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// healthy is a database with a week of daily backups whose archive works.
func healthy() standing {
	s := standing{now: noon, repository: "main", automated: &backup.Automated{
		Created: noon.Add(-7 * backup.Day), Retention: 3, Window: noon.Add(-9 * time.Hour), Made: noon.Add(-9 * time.Hour),
	}}
	s.Subject = database.Subject{
		Facts: plan.Facts{
			Want: plan.Database{ID: "db-1", State: member.Running}, Layout: plan.Layout{Created: true, Members: []plan.Placed{{Name: "m1", Host: "zone-a"}}},
			Leader: "m1", Alive: map[string]bool{"zone-a": true}, Reports: map[string]member.Report{},
		},
		Common: spec.Common{Name: "orders", ResourceID: "db-1", BackupRetention: 3, BackupWindow: "03:00-03:30", Created: noon.Add(-7 * backup.Day)},
	}
	s.archives(member.Archived{Restorable: member.Mark{At: noon.Add(-20 * time.Second)}})
	for n := 6; n >= 0; n-- {
		stop := noon.Add(-time.Duration(n)*backup.Day - 9*time.Hour + 10*time.Minute) // 03:10
		s.all = append(s.all, backup.Backup{Database: "db-1", Repository: "main", Label: stop.Format("0102"), Kind: backup.Full, Automated: true, Stop: stop, Stored: 10})
	}
	return s
}

func (s *standing) archives(a member.Archived) {
	id := member.ID("db-1", "m1")
	r := s.Reports[id]
	r.Ready, r.Archived = true, &a
	s.Reports[id] = r
}

func (s *standing) work(kind operation.Kind, id string, change func(*operation.Record)) {
	o := &operation.Record{ID: id, Kind: kind.Name, State: operation.Running}
	if change != nil {
		change(o)
	}
	s.works = append(s.works, o)
}

func TestProblems(t *testing.T) {
	failed := func(reason string, ago time.Duration) func(*operation.Record) {
		return func(o *operation.Record) { o.State, o.Reason, o.Ended = operation.Failed, reason, noon.Add(-ago) }
	}
	for name, c := range map[string]struct {
		change func(*standing)
		want   string // code: words …; "" is none
	}{
		"all is well":    {func(*standing) {}, ""},
		"a drill worked": {func(s *standing) { s.drill = &backup.DrillRecord{Ended: noon, Worked: noon} }, ""},
		"a drill failed": {func(s *standing) { s.drill = &backup.DrillRecord{Ended: noon, Failed: "it is damaged: a"} }, "drill-failed: at 2026-11-24 12:00:00Z, failed: it is damaged: a; none ever worked"},
		"one worked before": {func(s *standing) {
			s.drill = &backup.DrillRecord{Ended: noon, Failed: "x", Worked: noon.Add(-backup.Day)}
		}, "drill-failed: worked was at 2026-11-23 12:00:00Z"},
		"a drill could not be made": {func(s *standing) {
			s.drill = &backup.DrillRecord{Ended: noon.Add(-backup.Day), Worked: noon.Add(-backup.Day)}
			s.work(backup.Drill, "drill-1", failed("host zone-a could not", time.Hour))
		}, "drill-failed: could not be tried at 2026-11-24 11:00:00Z: host zone-a could not"},
		"and a later one worked": {func(s *standing) {
			s.drill = &backup.DrillRecord{Ended: noon, Worked: noon}
			s.work(backup.Drill, "drill-1", failed("host zone-a could not", time.Hour))
		}, ""},
		"it matters without retention, too": {func(s *standing) {
			s.Common.BackupRetention, s.drill = 0, &backup.DrillRecord{Ended: noon, Failed: "x"}
		}, "drill-failed: x"},

		"no backup is late": {func(s *standing) { s.automated.Made = s.automated.Window }, ""},
		"one is": {func(s *standing) {
			s.automated.Made, s.automated.Window = noon.Add(-28*time.Hour), noon.Add(-4*time.Hour)
		}, "backup-late: its newest automated backup is of 2026-11-23 08:00:00Z, and the next one is not made"},
		"the first is":        {func(s *standing) { s.automated.Made = time.Time{} }, "backup-late: its first automated backup is not made yet: no moment of it can be restored"},
		"it is stopped":       {func(s *standing) { s.automated.Made, s.Want.State = time.Time{}, member.Stopped }, ""},
		"a database of today": {func(s *standing) { s.all, s.automated, s.Common.Created = nil, nil, noon }, ""},

		"ten minutes behind": {func(s *standing) {
			s.archives(member.Archived{Restorable: member.Mark{At: noon.Add(-10 * time.Minute)}})
		}, ""},
		"more than that": {func(s *standing) {
			s.archives(member.Archived{Restorable: member.Mark{At: noon.Add(-11 * time.Minute)}})
		}, "not-restorable: 2026-11-24 11:49:00Z, 11m0s ago"},
		"others say it": {func(s *standing) {
			s.archives(member.Archived{Failing: "it is full", Restorable: member.Mark{At: noon.Add(-time.Hour)}})
		}, ""},
		"a gap is said": {func(s *standing) {
			s.archives(member.Archived{Broken: "0001", Restorable: member.Mark{At: noon.Add(-time.Hour)}})
		}, ""},
		"no mark": {func(s *standing) { s.archives(member.Archived{}) }, "not-restorable: did not see yet"},
		"a new one": {func(s *standing) {
			s.Common.Created, s.all, s.automated = noon.Add(-9*time.Minute), nil, nil
			s.archives(member.Archived{})
		}, ""},
		"without a backup": {func(s *standing) {
			s.Common.Created, s.automated.Created, s.all = noon.Add(-time.Hour), noon.Add(-time.Hour), nil
		}, "not-restorable: no backup of it yet"},
		"the first is made": {func(s *standing) {
			s.Common.Created, s.automated.Created, s.all = noon.Add(-time.Hour), noon.Add(-time.Hour), nil
			s.work(backup.Take, "auto-1", nil)
		}, ""},
		"all are damaged": {func(s *standing) {
			for n := range s.all {
				s.all[n].Damaged = "a page"
			}
		}, "not-restorable: no backup that is sound"},
		"no primary":            {func(s *standing) { s.Leader = ""; s.archives(member.Archived{}) }, ""},
		"it is a replica":       {func(s *standing) { s.Want.Upstream, s.drill = &patroni.Upstream{}, &backup.DrillRecord{Failed: "x"} }, ""},
		"it is being deleted":   {func(s *standing) { s.Common.Deleting, s.drill = true, &backup.DrillRecord{Failed: "x"} }, ""},
		"the home was restored": {func(s *standing) { s.held, s.drill = true, &backup.DrillRecord{Failed: "x"} }, ""},
	} {
		s := healthy()
		c.change(&s)
		var got []string
		for _, p := range s.problems() {
			got = append(got, p.Code+": "+p.Text)
			if p.Subject != "db orders" || p.ResourceID != "db-1" || !strings.HasPrefix(p.Command, "howdah ") {
				t.Errorf("%s: %+v", name, p)
			}
		}
		code, words, _ := strings.Cut(c.want, ": ")
		text := strings.Join(got, "\n")
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(text, code+": ") || !strings.Contains(text, words)) {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// TestNothingIsPromisedThatIsNotSeen: without a mark, without a backup, in a gap.
func TestNothingIsPromisedThatIsNotSeen(t *testing.T) {
	mark := noon.Add(-20 * time.Second)
	for name, c := range map[string]struct {
		change   func(*standing)
		earliest time.Time
		latest   time.Time
	}{
		"all is well":  {func(*standing) {}, noon.Add(-3 * backup.Day), mark},
		"no mark":      {func(s *standing) { s.archives(member.Archived{}) }, time.Time{}, time.Time{}},
		"no backup":    {func(s *standing) { s.all = nil }, time.Time{}, time.Time{}},
		"no retention": {func(s *standing) { s.Common.BackupRetention = 0 }, time.Time{}, time.Time{}},
		"held":         {func(s *standing) { s.held = true }, time.Time{}, time.Time{}},
		"in a gap":     {func(s *standing) { s.all[6].Heals, s.all[6].Gap, s.all[6].Stop = true, mark.Add(-time.Second), noon }, time.Time{}, time.Time{}},
		"all in doubt": {func(s *standing) {
			for _, b := range s.all[:6] {
				s.all[6].Needs = append(s.all[6].Needs, b.Label)
			}
			s.all[6].Damaged = "a page"
		}, time.Time{}, time.Time{}},
		"the only one": {func(s *standing) { s.all = s.all[6:] }, noon.Add(-9*time.Hour + 10*time.Minute), mark},
		"before backups": {func(s *standing) {
			s.archives(member.Archived{Restorable: member.Mark{At: noon.Add(-30 * backup.Day)}})
		}, time.Time{}, time.Time{}},
	} {
		s := healthy()
		c.change(&s)
		earliest, latest := s.window()
		if !earliest.Equal(c.earliest) || !latest.Equal(c.latest) {
			t.Errorf("%s: from %s to %s, want from %s to %s", name, earliest, latest, c.earliest, c.latest)
		}
	}
}

func TestStatusOfBackups(t *testing.T) {
	s := healthy()
	rest := 90 * time.Second
	s.archives(member.Archived{Restorable: member.Mark{At: noon.Add(-rest)}, Failing: "the\nbucket is full", Since: noon.Add(-rest), Waiting: 32 << 20})
	s.drill = &backup.DrillRecord{
		Database: "db-1", Operation: "drill-1", Began: noon, Ended: noon.Add(time.Minute), Worked: noon.Add(time.Minute),
		Drilled: backup.Drilled{Newest: noon.Add(-12 * time.Second), Files: 3 * time.Second, Replay: 2 * time.Second},
	}
	s.work(backup.Take, "auto-1", nil)
	got := s.status(names{"db-1": {Name: "orders"}}, map[key][]string{{"db-1", "main", "1124"}: {"before-upgrade"}})
	if got.Archive != admin.ArchiveFails || got.Failing != "the bucket is full" || got.Waiting != 32<<20 || got.Stored != 70 || got.Short.Count != 7 {
		t.Errorf("archive %+v", got)
	}
	if got.Newest == nil || got.Newest.Label != "1124" || len(got.Newest.Snapshots) != 1 || got.Making != "auto-1" || got.Drilling != "" {
		t.Errorf("newest %+v, %+v", got.Newest, got)
	}
	if want := noon.Add(15 * time.Hour); !got.Window.Equal(want) || !got.Short.Restorable.Equal(noon.Add(-rest)) {
		t.Errorf("window %s, restorable %s", got.Window, got.Short.Restorable)
	}
	if d := got.Drill; d == nil || d.RTO != 5 || d.RPO == nil || *d.RPO != 12 || !d.Restored || got.Short.Proved.IsZero() {
		t.Errorf("drill %+v", got.Drill)
	}
	s.archives(member.Archived{Broken: "000000010000000000000003"})
	s.Alive["zone-a"] = true
	if got := s.status(names{}, nil); got.Archive != admin.ArchiveBroken || got.Broken == "" {
		t.Errorf("broken: %+v", got)
	}
	s.Alive["zone-a"] = false
	if got := s.status(names{}, nil); got.Archive != admin.ArchiveUnknown || got.Broken != "" {
		t.Errorf("its host is lost: %+v", got)
	}
}

// TestADrillThatRestoredNothingMeasuredNothing: no RTO and no RPO are shown of it.
func TestADrillThatRestoredNothingMeasuredNothing(t *testing.T) {
	d := drillShown(backup.DrillRecord{Began: noon, Drilled: backup.Drilled{Newest: noon, Files: time.Second, Unrestorable: "WAL is missing"}, Failed: "x"}, "orders")
	if d.Restored || d.RTO != 0 || d.RPO != nil {
		t.Errorf("%+v", d)
	}
}
