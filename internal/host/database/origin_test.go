package database

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/patroni/program"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/origin"
	"howdah/internal/host/tree"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/sourcetest"
)

// opens answers a source that everybody may read.
func opens(w *world, s *sourcetest.Source) origin.Open {
	w.Helper()
	if out, err := exec.Command("chmod", "-R", "a+rX", s.Dir).CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	return func(context.Context, string, member.Restore) (origin.Source, error) {
		return origin.Source{Engine: sourcetest.Plain{Dir: s.Dir}, Access: backup.Access{Name: "main"}}, nil
	}
}

// restoredFrom is a database that was backed up, whose master user is ada.
func restoredFrom(t *testing.T) (s *sourcetest.Source, last sourcetest.Commit) {
	t.Helper()
	s = sourcetest.New(t)
	verifier, err := scram.Verifier("old-password")
	s.Must(err)
	conn, err := pgx.Connect(t.Context(), "host="+filepath.Join(s.Dir, "socket")+" port=5432 user=rdsadmin dbname=rdsadmin")
	s.Must(err)
	defer conn.Close(t.Context())
	s.Must(postgres.SetOwner(t.Context(), conn, postgres.Owner{Name: "ada", Verifier: verifier, Serial: 7, Database: "works"}))
	s.Exec("CREATE SUBSCRIPTION theirs CONNECTION 'host=/nowhere dbname=x' PUBLICATION p WITH (connect = false, slot_name = 'theirs')")
	s.Exec("ALTER SUBSCRIPTION theirs ENABLE")
	s.Backup("one")
	last = s.Keep("a")
	s.Keep("b")
	s.Archive()
	return s, last
}

// A restored database, with the real Patroni and PostgreSQL: its data are those of the moment, its
// master user is that of the new record, and the agent may be killed while it is made.
func TestARestoredDatabase(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	s, last := restoredFrom(t)
	w := newWorld(t, "")
	opened := opens(w, s)
	fails := true
	host, _ := w.run(func(a *Host) {
		a.sources = func(ctx context.Context, id string, from member.Restore) (origin.Source, error) {
			if fails {
				fails = false
				return origin.Source{}, errors.New("it is away for a moment")
			}
			return opened(ctx, id, from)
		}
	})
	a := w.Assignment("db-2", 1)
	verifier, err := scram.Verifier("new-password")
	w.Must(err)
	a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 1}
	a.Inherits, a.Restore = true, &member.Restore{Database: "db-1", Repository: "main", Label: "one", Until: last.At}
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Restoring == nil || r.Restoring.Phase == "" || r.Patroni {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.InRecovery || r.OwnerSerial != 1 || r.Restoring != nil || r.Problem != member.None || r.Timeline != 2 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	conn, err := dial.Admin(t.Context(), host.Agent, a)
	w.Must(err)
	defer conn.Close(t.Context())
	var rows, password, owner string
	w.Must(conn.QueryRow(t.Context(), "SELECT string_agg(what, ' '), (SELECT rolpassword FROM pg_authid WHERE rolname = 'ada'), "+
		"(SELECT datdba::regrole::text FROM pg_database WHERE datname = 'works') FROM public.kept").Scan(&rows, &password, &owner))
	if rows != "a" || password != verifier || owner != "ada" {
		t.Errorf("it has %q, the password %q, want %q, and the owner %q", rows, password, verifier, owner)
	}
	var reads bool
	w.Must(conn.QueryRow(t.Context(), "SELECT subenabled OR subslotname IS NOT NULL FROM pg_subscription").Scan(&reads))
	if reads {
		t.Error("it reads the slot of its source's subscription")
	}
	control, err := postgres.ReadControl(filepath.Join(w.MemberDir(a.ID), "data"))
	w.Must(err)
	testkit.Eventually(t, hosttest.Soon, func() error {
		if named, _ := w.Get(patroni.InitializeKey(a.Scope)); named != fmt.Sprint(control.SystemID) {
			return fmt.Errorf("Patroni knows %q, and the data are %d", named, control.SystemID)
		}
		return nil
	})
	testkit.Eventually(t, hosttest.Soon, func() error {
		if tree.Exists(filepath.Join(w.MemberDir(a.ID), "restore")) {
			return errors.New("what the restore left is there")
		}
		return nil
	})
	a.Generation, a.Restore = 2, nil
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready {
			return fmt.Errorf("report %+v", r)
		}
		return hosttest.Running(2)(r)
	})
	w.deleted(a)
}

// deleted has a member deleted, and waits until it is.
func (w *world) deleted(a member.Assignment) {
	w.Helper()
	a.Generation, a.Want = a.Generation+1, member.Absent
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, hosttest.Gone)
	if tree.Exists(w.MemberDir(a.ID)) {
		w.Errorf("its directory is there")
	}
}

// TestARestoreThatCannotBe: it is reported for good, Patroni is not started, and the member can be
// stopped and deleted.
func TestARestoreThatCannotBe(t *testing.T) {
	t.Parallel()
	s, last := restoredFrom(t)
	w := newWorld(t, waits)
	opened := opens(w, s)
	w.run(func(a *Host) { a.sources = opened })
	a := w.Assignment("db-2", 1)
	a.Inherits, a.Restore = true, &member.Restore{Database: "db-1", Repository: "main", Label: "one", Until: last.At.Add(time.Hour)}
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.RestoreFails || !strings.Contains(r.Detail, "the archive ends at") || r.Patroni || r.Restoring != nil {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	w.deleted(a)
}

// TestARestoreInTheMiddle ends with its member.
func TestARestoreInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(func(a *Host) {
		a.sources = func(ctx context.Context, _ string, _ member.Restore) (origin.Source, error) {
			<-ctx.Done() // it takes for ever
			return origin.Source{}, ctx.Err()
		}
	})
	a := w.Assignment("db-2", 1)
	a.Inherits, a.Restore = true, &member.Restore{Database: "db-1", Repository: "main", Label: "one"}
	w.Assign(a)
	restoring := func(r member.Report) error {
		if r.Restoring == nil || r.Patroni {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	}
	w.Awaits(a.ID, time.Minute, restoring)
	a.Generation, a.Want = 2, member.Stopped
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Restoring != nil || r.Generation != 2 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	a.Generation, a.Want = 3, member.Running
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, restoring)
	w.deleted(a)
}

// TestAMemberThatInheritsIsHandedNothing: its script has no other data than those that were restored.
func TestAMemberThatInheritsIsHandedNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `./initdb --pgdata=data > answer 2>&1; echo $? >> answer
`+waits)
	w.run(func(a *Host) { a.spares.Keep = 1 })
	a := w.Assignment("db-2", 1)
	a.Inherits = true
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, hosttest.Running(1))
	testkit.Eventually(t, hosttest.Soon, func() error {
		if answer := strings.Join(w.Lines(a.ID, "answer"), " "); !strings.HasSuffix(answer, " 1") || !strings.Contains(answer, "restored by another member") {
			return fmt.Errorf("the script says %q", answer)
		}
		return nil
	})
	if tree.Exists(filepath.Join(w.Dir, "handed", a.ID)) {
		t.Error("it has a place for prepared data")
	}
}
