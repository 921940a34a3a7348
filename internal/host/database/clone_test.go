package database

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/origin"
	"howdah/internal/host/restore"
	"howdah/internal/host/tree"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// primary runs a database on the host, with a table that has one row.
func (w *world) primary(host *Host, scope, owner string) (member.Assignment, *pgx.Conn) {
	w.Helper()
	a := w.Assignment(scope, 1)
	verifier, err := scram.Verifier("old-password")
	w.Must(err)
	a.Owner = member.Owner{Name: owner, Verifier: verifier, Serial: 1}
	w.Assign(a)
	w.serves(a)
	conn, err := dial.Admin(w.Context(), host.Agent, a)
	w.Must(err)
	w.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(w.Context(), "CREATE TABLE public.kept (what text)")
	w.Must(err)
	_, err = conn.Exec(w.Context(), "INSERT INTO public.kept VALUES ('a')")
	w.Must(err)
	return a, conn
}

func (w *world) serves(a member.Assignment) {
	w.Helper()
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.InRecovery || r.OwnerSerial != 1 || r.Problem != member.None {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
}

// cloneOf is a clone that is not told yet to begin.
func (w *world) cloneOf(source, scope, owner string) member.Assignment {
	w.Helper()
	a := w.Assignment(scope, 1)
	verifier, err := scram.Verifier("new-password")
	w.Must(err)
	a.Owner = member.Owner{Name: owner, Verifier: verifier, Serial: 1}
	a.Inherits, a.Restore = true, &member.Restore{Live: true, Database: source}
	return a
}

// A clone of a database that runs, with the real Patroni and PostgreSQL: it has what was acknowledged,
// an identity of its own and its own master user. The source keeps nothing of it, and neither sees
// what the other does.
func TestACloneOfADatabase(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	host, _ := w.run(func(a *Host) { a.spares.Keep = 1 })
	source, conn := w.primary(host, "db-1", "ada")
	clone := w.cloneOf("db-1", "db-2", "ada")
	w.Assign(clone)
	w.serves(clone)
	own, err := dial.Admin(t.Context(), host.Agent, clone)
	w.Must(err)
	defer own.Close(t.Context())
	var rows, password string
	w.Must(own.QueryRow(t.Context(), "SELECT string_agg(what, ' '), (SELECT rolpassword FROM pg_authid WHERE rolname = 'ada') FROM public.kept").Scan(&rows, &password))
	if rows != "a" || password != clone.Owner.Verifier {
		t.Errorf("it has %q, and the password %q", rows, password)
	}
	_, err = own.Exec(t.Context(), "UPDATE public.kept SET what = 'of the clone'")
	w.Must(err)
	var slots int
	w.Must(conn.QueryRow(t.Context(), "SELECT string_agg(what, ' '), (SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'howdah_clone%') FROM public.kept").Scan(&rows, &slots))
	if rows != "a" || slots != 0 {
		t.Errorf("the source has %q, and %d slots", rows, slots)
	}
	first, err := postgres.ReadControl(filepath.Join(w.MemberDir(source.ID), patroni.DataDir))
	w.Must(err)
	second, err := postgres.ReadControl(filepath.Join(w.MemberDir(clone.ID), patroni.DataDir))
	w.Must(err)
	if first.SystemID == second.SystemID {
		t.Error("both have one system identifier")
	}
	testkit.Eventually(t, hosttest.Soon, func() error {
		if tree.Exists(filepath.Join(w.MemberDir(clone.ID), "restore")) {
			return errors.New("what the clone was made in is there")
		}
		return nil
	})
	w.deleted(source)
	_, err = own.Exec(t.Context(), "INSERT INTO public.kept VALUES ('alone')")
	w.Must(err)
}

// TestACloneWithoutASource waits, says why, and can be deleted.
func TestACloneWithoutASource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	clone := w.cloneOf("db-1", "db-2", "ada")
	w.Assign(clone)
	w.Awaits(clone.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.SourceAway || !strings.Contains(r.Detail, "does not answer") || r.Patroni {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	w.deleted(clone)
}

// TestHowFarAPrimaryIs: only who holds the leader's key is believed.
func TestHowFarAPrimaryIs(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	host, _ := w.run(func(a *Host) { a.spares.Keep = 1 })
	source, conn := w.primary(host, "db-1", "ada")
	var before, after restore.Point
	reach := func() (restore.Point, error) { return host.reach(t.Context(), source, conn) }
	testkit.Eventually(t, hosttest.Soon, func() (err error) { // Patroni takes the key when the server is there
		before, err = reach()
		return err
	})
	_, err := conn.Exec(t.Context(), "INSERT INTO public.kept VALUES ('b')")
	w.Must(err)
	if after, err = reach(); err != nil || after.At <= before.At || after.Timeline != 1 {
		t.Errorf("it was at %+v, and is at %+v, %v", before, after, err)
	}
	// As a standby on another host would ask it.
	primary, err := host.primaryOf(t.Context(), source.Scope, source.Name)
	w.Must(err)
	defer primary.Close(t.Context())
	if standby, at, err := flushed(t.Context(), primary); standby || at.At < after.At || at.Timeline != 1 || err != nil {
		t.Errorf("it says %v, %+v, %v", standby, at, err)
	}
	other := source
	other.Name = "m2"
	if _, err := host.reach(t.Context(), other, conn); !errors.Is(err, errNoPrimary) {
		t.Errorf("one without the key is believed: %v", err)
	}
	if _, err := host.primaryOf(t.Context(), source.Scope, "m7"); !errors.Is(err, errNoPrimary) {
		t.Errorf("nobody is asked: %v", err)
	}
	if _, err := host.openClone(member.Restore{Database: "db-7"}).Live.Connect(t.Context()); !errors.Is(err, origin.ErrSourceAway) {
		t.Errorf("nobody is cloned: %v", err)
	}
}
