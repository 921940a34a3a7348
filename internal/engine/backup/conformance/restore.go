package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/model/lsn"
	"howdah/internal/testkit"
)

const count = "SELECT coalesce(sum(n), 0)::text FROM kept"

// prepared makes a table, also in a tablespace as users have them.
func prepared(t *testing.T, c Config) *world {
	t.Helper()
	w := begin(t, c, main)
	w.exec("CREATE TABLE kept (n int)")
	w.exec("ALTER SYSTEM SET allow_in_place_tablespaces = on")
	w.exec("SELECT pg_reload_conf()")
	w.exec("CREATE TABLESPACE apart LOCATION ''")
	w.exec("CREATE TABLE far TABLESPACE apart AS SELECT 7 AS n")
	w.exec("INSERT INTO kept VALUES (1)")
	return w
}

// Full and incremental backups are listed as they are, and restore to their end.
func testBackup(t *testing.T, c Config) {
	w := prepared(t, c)
	if l := w.list(); len(l.Backups) != 0 {
		t.Errorf("an empty repository lists %+v", l)
	}
	before := time.Now().Add(-time.Second)
	// The first one is full, whatever was asked for.
	full := w.backup(backupmodel.Incremental, "op-1")
	w.exec("INSERT INTO kept VALUES (2)")
	w.exec("UPDATE far SET n = 8")
	incremental := w.backup(backupmodel.Incremental, "op-2")
	w.exec("INSERT INTO kept VALUES (4)")
	w.switchWAL()
	w.archived(w.server)

	listing := w.list()
	if len(listing.Backups) != 2 || listing.Backups[0].Label != full.Label || listing.Backups[1].Label != incremental.Label {
		t.Fatalf("listed: %+v", listing.Backups)
	}
	if full.Kind != backupmodel.Full || len(full.Needs) != 0 {
		t.Errorf("the first backup is %+v", full)
	}
	if incremental.Kind != backupmodel.Incremental || len(incremental.Needs) != 1 || incremental.Needs[0] != full.Label {
		t.Errorf("the second backup is %+v", incremental)
	}
	id := w.ask(w.server, "SELECT system_identifier::text FROM pg_control_system()")
	for _, b := range listing.Backups {
		if b.Start.Before(before) || b.Stop.Before(b.Start) || b.Stop.After(time.Now().Add(time.Second)) || b.StopLSN <= b.StartLSN || b.Timeline != 1 ||
			b.Major != w.place.Major || b.SystemID != id || b.Size <= 0 || b.Stored <= 0 || b.Damaged {
			t.Errorf("listed: %+v", b)
		}
	}
	if incremental.Stored*2 > full.Stored {
		t.Errorf("an incremental backup stores %d bytes, a full one %d", incremental.Stored, full.Stored)
	}
	w.whole(w.place, main)

	r := w.restore("full", backup.Restore{Label: full.Label})
	r.has(count, "1")
	r.has("SELECT n::text FROM far", "7")
	r = w.restore("incremental", backup.Restore{Label: incremental.Label})
	r.has(count, "3")
	r.has("SELECT n::text FROM far", "8")

	absent := w.place
	absent.DataDir = w.dir(w.server, "data-absent")
	w.write(w.server, absent)
	w.refused(w.engine.Restore(absent, backup.Restore{Repository: main, Label: "20200101-000000F"}), "does not have this backup")
}

// Recovery ends where it was told to, to the byte.
func testTargets(t *testing.T, c Config) {
	w := prepared(t, c)
	full := w.backup(backupmodel.Full, "op-1")
	w.exec("INSERT INTO kept VALUES (2)")
	moment := w.ask(w.server, "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')")
	w.exec("INSERT INTO kept VALUES (4)")
	position := w.ask(w.server, "SELECT pg_current_wal_insert_lsn()::text")
	w.exec("INSERT INTO kept VALUES (8)")
	transaction := w.ask(w.server, "WITH i AS (INSERT INTO kept VALUES (16) RETURNING 1) SELECT pg_current_xact_id()::text FROM i")
	w.exec("INSERT INTO kept VALUES (32)")
	w.switchWAL()
	w.archived(w.server)

	until, err := time.Parse("2006-01-02 15:04:05.000000", moment)
	if err != nil {
		t.Fatal(err)
	}
	at, err := lsn.Parse(position)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		target backup.Target
		want   string
	}{
		"moment":      {backup.Target{Until: until}, "3"},
		"position":    {backup.Target{LSN: at}, "7"},
		"transaction": {backup.Target{Before: transaction}, "15"},
		"newest":      {backup.Target{Newest: true}, "63"},
	} {
		w.restore(name, backup.Restore{Label: full.Label, Target: test.target}).has(count, test.want)
	}
	w.restore("future", backup.Restore{Label: full.Label, Target: backup.Target{Until: time.Now().Add(time.Hour)}}).ended("before configured recovery target was reached")
}

// The moment at which a backup is said to have ended can be restored from it, although others commit
// at that time.
func testEnd(t *testing.T, c Config) {
	w := prepared(t, c)
	w.exec("CREATE TABLE busy (at timestamptz DEFAULT clock_timestamp())")
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for ctx.Err() == nil {
			var n string
			_ = ask(ctx, w.server.Config(), "INSERT INTO busy VALUES (DEFAULT) RETURNING 'x'", &n)
		}
	})
	full := w.backup(backupmodel.Full, "op-1")
	testkit.Eventually(t, within, func() error { // somebody commits after that moment
		if w.ask(w.server, "SELECT (max(at) > '"+full.Stop.Format(time.RFC3339)+"')::text FROM busy") != "true" {
			return errors.New("nothing was committed later")
		}
		return nil
	})
	cancel()
	writing.Wait()
	w.switchWAL()
	w.archived(w.server)
	r := w.restore("end", backup.Restore{Label: full.Label, Target: backup.Target{Until: full.Stop}})
	r.has("SELECT (max(at) <= '"+full.Stop.Format(time.RFC3339)+"')::text FROM busy", "true")
}

// WAL that is missing in the middle ends recovery with an error, and not with less data.
func testGap(t *testing.T, c Config) {
	w := prepared(t, c)
	full := w.backup(backupmodel.Full, "op-1")
	w.exec("INSERT INTO kept VALUES (2)")
	first := w.switchWAL()
	w.exec("INSERT INTO kept VALUES (4)")
	gone := w.switchWAL()
	w.exec("INSERT INTO kept VALUES (8)")
	w.switchWAL()
	w.archived(w.server)
	if w.repositories[main].Remove(t, gone) != 1 {
		t.Fatalf("%s is not in the repository", gone)
	}
	w.restore("newest", backup.Restore{Label: full.Label, Target: backup.Target{Newest: true}}).ended(gone + " is missing")
	w.restore("moment", backup.Restore{Label: full.Label, Target: backup.Target{Until: time.Now()}}).ended("before configured recovery target was reached")
	position := w.ask(w.server, "SELECT ('0/' || substr('"+first+"', 23, 2) || 'FFFFF0')::pg_lsn::text")
	if _, err := lsn.Parse(position); err != nil {
		t.Fatal(err)
	}
	// What needs nothing of it is restored.
	w.restore("end", backup.Restore{Label: full.Label}).has(count, "1")

	back := w.repositories[main].Away
	p := w.place
	p.Dir, p.DataDir = w.dir(w.server, "origin-away"), w.dir(w.server, "data-away")
	w.write(w.server, p)
	r := backup.Restore{Repository: main, Label: full.Label, Target: backup.Target{Newest: true}}
	w.must(w.engine.Restore(p, r))
	defer back(t)()
	if s := w.start("away", p, w.engine.Recovery(p, r)); !s.failed {
		t.Errorf("recovery without the repository did not fail:\n%s", s.said)
	}
}

// Expire removes what it is told to, and keeps what the rest needs.
func testExpire(t *testing.T, c Config) {
	w := prepared(t, c)
	var infos []backup.Info
	for i, kind := range []backupmodel.Kind{backupmodel.Full, backupmodel.Incremental, backupmodel.Incremental, backupmodel.Full, backupmodel.Incremental} {
		infos = append(infos, w.backup(kind, "op-"+string(rune('1'+i))))
		w.exec("INSERT INTO kept VALUES (2)")
		w.switchWAL()
	}
	w.archived(w.server)
	oldest := w.list().FirstWAL
	expire := func(e backup.Expire) {
		t.Helper()
		e.Repository = main
		for _, command := range w.engine.Expire(w.place, e) {
			w.must(command)
		}
	}
	labels := func() string {
		var all []string
		for _, b := range w.list().Backups {
			all = append(all, b.Label)
		}
		return strings.Join(all, " ")
	}
	expire(backup.Expire{Labels: []string{infos[2].Label}})
	if got, want := labels(), strings.Join([]string{infos[0].Label, infos[1].Label, infos[3].Label, infos[4].Label}, " "); got != want {
		t.Errorf("%s are left, and not %s", got, want)
	}
	if first := w.list().FirstWAL; first != oldest {
		t.Errorf("WAL before %s went, too", first)
	}
	expire(backup.Expire{Archive: 2})
	w.restore("old", backup.Restore{Label: infos[1].Label}).has(count, "3")
	w.restore("between", backup.Restore{Label: infos[1].Label, Target: backup.Target{Newest: true}}).ended("is missing")
	w.restore("newest", backup.Restore{Label: infos[3].Label, Target: backup.Target{Newest: true}}).has(count, "11")
	expire(backup.Expire{Labels: []string{infos[0].Label}, Archive: 2})
	if got, want := labels(), infos[3].Label+" "+infos[4].Label; got != want {
		t.Errorf("%s are left, and not %s", got, want)
	}
	w.restore("last", backup.Restore{Label: infos[4].Label}).has(count, "9")
	w.refused(w.engine.Expire(w.place, backup.Expire{Repository: main, Labels: []string{infos[3].Label}})[0], "newest full backup")
}
