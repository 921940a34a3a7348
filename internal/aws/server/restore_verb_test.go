package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// restore asks for a restore by the command line's verb.
func (u *user) restore(in admin.RestoreRequest) (admin.RestorePlan, error) {
	u.Helper()
	c := u.operator()
	c.Scope = u.scope()
	return ask[admin.RestorePlan](u.T, u.world, c, admin.VerbRestore, in)
}

func (u *user) ago(ago time.Duration) *time.Time {
	at := u.now().UTC().Add(-ago).Truncate(time.Microsecond)
	return &at
}

func TestRestoresThatRDSHasNoWordsFor(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	backedUpDB(u)
	db := u.instanceRecord("db")
	newest := db.ResourceID
	for name, c := range map[string]struct {
		at   admin.RestorePoint
		want spec.Origin
		base time.Duration
	}{
		"lsn":    {admin.RestorePoint{LSN: "0/2000001"}, spec.Origin{LSN: "0/2000001"}, hour},
		"octal":  {admin.RestorePoint{Before: "0010"}, spec.Origin{Before: "10"}, 3 * hour},
		"before": {admin.RestorePoint{Before: "4711"}, spec.Origin{Before: "4711"}, 3 * hour},
		"time":   {admin.RestorePoint{Time: u.ago(150 * time.Minute)}, spec.Origin{}, 3 * hour},
		"latest": {admin.RestorePoint{Latest: true}, spec.Origin{Newest: true}, hour},
	} {
		in := admin.RestoreRequest{Name: name, From: "db", RestorePoint: c.at, Class: "db.m5.large"}
		in.DryRun = true
		dry, err := u.restore(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := state.Load[spec.Instance](u.server.Cache, state.Instance(u.account, u.scope().Region, name)); err == nil {
			t.Fatalf("%s: the dry run made it", name)
		}
		in.DryRun = false
		made, err := u.restore(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if dry.Label != made.Label || dry.Class != "db.m5.large" || dry.FromID != newest || len(dry.Hosts) != 1 || !dry.DryRun || made.DryRun {
			t.Errorf("%s: would %+v, did %+v", name, dry, made)
		}
		if got := u.now().UTC().Sub(made.Taken).Round(time.Minute); got != c.base {
			t.Errorf("%s: begins with a backup of %s ago, want %s", name, got, c.base)
		}
		o := u.instanceRecord(name).Origin
		if o == nil || o.LSN != c.want.LSN || o.Before != c.want.Before || o.Newest != c.want.Newest || (c.at.Time != nil) != !o.Until.IsZero() {
			t.Errorf("%s: origin %+v", name, o)
		}
		if c.at.Time != nil && !o.Until.Equal(*c.at.Time) {
			t.Errorf("%s: until %s, want %s", name, o.Until, c.at.Time)
		}
	}
}

func TestRestoresThatAreRefused(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	backedUpDB(u)
	latest := admin.RestorePoint{Latest: true}
	for name, c := range map[string]struct {
		in   admin.RestoreRequest
		want []string // in the message or the hint
	}{
		"nothing":              {admin.RestoreRequest{Name: "new"}, []string{"what to restore"}},
		"no moment":            {admin.RestoreRequest{Name: "new", From: "db"}, []string{"Exactly one moment"}},
		"two moments":          {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: admin.RestorePoint{Latest: true, LSN: "1/1"}}, []string{"Exactly one moment"}},
		"a snapshot at a time": {admin.RestoreRequest{Name: "new", RestorePoint: admin.RestorePoint{Latest: true, Snapshot: "snap"}}, []string{"one moment"}},
		"nobody":               {admin.RestoreRequest{Name: "new", From: "nobody", RestorePoint: latest}, []string{"nobody", "howdah db list"}},
		"no snapshot":          {admin.RestoreRequest{Name: "new", RestorePoint: admin.RestorePoint{Snapshot: "none"}}, []string{"none", "howdah snapshot list"}},
		"the future":           {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: admin.RestorePoint{Time: u.ago(-hour)}}, []string{"later than", "howdah backup show db"}},
		"before all backups":   {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: admin.RestorePoint{Time: u.ago(5 * hour)}}, []string{"earlier than", "howdah backup show db"}},
		"a position to come":   {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: admin.RestorePoint{LSN: "F/0"}}, []string{"F/0", "0/3000000", "howdah backup show db"}},
		"a position of before": {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: admin.RestorePoint{LSN: "0/1"}}, []string{"no whole backup", "howdah backup show db"}},
		"no position":          {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: admin.RestorePoint{LSN: "x"}}, []string{"no position of WAL"}},
		"no transaction":       {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: admin.RestorePoint{Before: "2"}}, []string{"no id of a transaction"}},
		"a moment too fine":    {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: admin.RestorePoint{Time: wire.Some(u.now().Truncate(time.Second).Add(1))}}, []string{"six digits"}},
		"a name in use":        {admin.RestoreRequest{Name: "db", From: "db", RestorePoint: latest}, []string{"already exists", "choose another name"}},
		"a bad name":           {admin.RestoreRequest{Name: "1", From: "db", RestorePoint: latest}, []string{"name"}},
		"a small disk":         {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: latest, StorageGiB: 5}, []string{"at least"}},
		"no class":             {admin.RestoreRequest{Name: "new", From: "db", RestorePoint: latest, Class: "db.none"}, []string{"db.none"}},
	} {
		_, err := u.restore(c.in)
		if err == nil {
			t.Errorf("%s: done", name)
			continue
		}
		u.says(name, err, c.want...)
	}
}

// says checks that an error or its hint has these words.
func (u *user) says(name string, err error, words ...string) {
	u.Helper()
	text := err.Error()
	if e, ok := errors.AsType[*admin.Error](err); ok {
		text += " " + e.Hint
	} else if e, ok := errors.AsType[*wire.Error](err); ok {
		text += " " + e.Hint
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			u.Errorf("%s: %v (%q) says nothing of %q", name, err, text, word)
		}
	}
}

// After the end of the newest backup of a database that is no more nobody commits. So that end is what
// is restored, and not a moment, which PostgreSQL would wait for in vain.
func TestTheEndOfTheNewestBackupOfWhatIsGone(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	backedUpDB(u)
	old := u.automatedOf("db")
	having(with(dropDB, keepBackups))(u)
	var newest backup.Backup
	for _, r := range state.LoadAll[backup.Backup](u.server.Cache, state.BackupPrefix(old.Database)) {
		if r.Value.Stop.After(newest.Stop) {
			newest = r.Value
		}
	}
	a, err := state.Load[backup.Automated](u.server.Cache, state.Automated(old.Database))
	if err != nil {
		t.Fatal(err)
	}
	a.Value.Until = newest.Stop
	u.put(state.Put(a.Key, a.Value))
	p, err := u.restore(admin.RestoreRequest{Name: "end", From: "db", RestorePoint: admin.RestorePoint{Time: &newest.Stop}})
	if err != nil || p.Label != newest.Label || !p.Until.Equal(newest.Stop) {
		t.Fatalf("%+v, %v", p, err)
	}
	if o := u.instanceRecord("end").Origin; !o.Until.IsZero() || o.Newest || o.Snapshot {
		t.Errorf("%+v", o)
	}
	before := newest.Stop.Add(-time.Minute)
	if p, err := u.restore(admin.RestoreRequest{Name: "before", From: "db", RestorePoint: admin.RestorePoint{Time: &before}}); err != nil || !p.Until.Equal(before) {
		t.Errorf("%+v, %v", p, err)
	}
}

// What a name meant before is found by its moment: the one that has the name now began later.
func TestARestoreOfWhatHadTheNameBefore(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	backedUpDB(u)
	old := u.automatedOf("db")
	having(with(dropDB, keepBackups))(u)
	latest := admin.RestoreRequest{Name: "again", From: "db", RestorePoint: admin.RestorePoint{Latest: true}}
	if p, err := u.restore(latest); err != nil || p.FromID != old.Database {
		t.Fatalf("of the one that is gone: %+v, %v", p, err)
	}
	having(with(newDB, backed))(u)
	u.backedUp("db", 10*time.Minute)
	for at, want := range map[time.Duration]string{5 * time.Minute: u.database("db").ID, 90 * time.Minute: old.Database} {
		p, err := u.restore(admin.RestoreRequest{Name: "at", From: "db", RestorePoint: admin.RestorePoint{Time: u.ago(at)}, DryRun: true})
		if err != nil || p.FromID != want {
			t.Errorf("%s ago: %+v, %v", at, p, err)
		}
	}
	if p, err := u.restore(admin.RestoreRequest{Name: "id", From: old.Database, RestorePoint: admin.RestorePoint{Time: u.ago(2 * hour)}, DryRun: true}); err != nil || p.FromID != old.Database {
		t.Errorf("by its id: %+v, %v", p, err)
	}
}
