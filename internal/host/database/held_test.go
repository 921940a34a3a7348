package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// A home that was restored is told which data are here, also of members that it does not
// know, and once more all that it was told before. Nothing is touched.
func TestARestoredHomeIsToldWhatIsHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.run(nil)
	a := w.startPrimary()
	serving := w.Lines(a.ID, "data/postmaster.pid")[0]
	for id, files := range map[string][]string{"db-2.m1": {"data/global/pg_control"}, "db-3.m1": nil} {
		for _, f := range append(files, "note") {
			path := filepath.Join(w.Dir, "members", id, f)
			w.Must(os.MkdirAll(filepath.Dir(path), 0o700))
			w.Must(os.WriteFile(path, make([]byte, 20), 0o600))
		}
	}
	for _, key := range []string{state.Report(hosttest.Name, a.ID), state.Host(hosttest.Name), state.Assign(hosttest.Name, a.ID)} {
		_, err := w.Store.Client.Delete(w.Context(), key)
		w.Must(err)
	}
	_, err := w.Store.Commit(w.Context(), state.Put(state.Hold("db-1"), regain.Hold{Database: "db-1"}), state.Put(state.Restored(), regain.Home{ID: "r1", At: time.Now()}))
	w.Must(err)
	testkit.Eventually(t, hosttest.Soon, func() error {
		said, err := state.Get[regain.Holding](w.Context(), w.Store, state.Holding(hosttest.Name))
		if err != nil {
			return err
		}
		if want := []string{a.ID, "db-2.m1"}; said.Value.Home != "r1" || !slices.Equal(said.Value.Members, want) {
			return fmt.Errorf("%+v, want %q", said.Value, want)
		}
		for id, why := range map[string]string{a.ID: "does not answer", "db-2.m1": "cannot be read"} {
			c, err := state.Get[regain.Copy](w.Context(), w.Store, state.HeldCopy(hosttest.Name, id))
			if err != nil || c.Value.Home != "r1" || !strings.Contains(c.Value.Unsettled, why) || c.Value.Running != (id == a.ID) {
				return fmt.Errorf("%+v, %w", c.Value, err)
			}
		}
		if _, err := state.Get[member.Report](w.Context(), w.Store, state.Report(hosttest.Name, a.ID)); err != nil {
			return err
		}
		_, err = state.Get[member.Host](w.Context(), w.Store, state.Host(hosttest.Name))
		return err
	})
	if now := w.Lines(a.ID, "data/postmaster.pid")[0]; now != serving || len(w.Lines(a.ID, "starts")) != 1 {
		t.Error("the member was touched")
	}
}

// lying is a member with data, of which something was seen.
type lying struct {
	*Host
	id, dir string
	report  member.Report // that was made last
	inspect agent.Inspector
}

func (l *lying) ReportOf(string) (member.Report, bool) { return l.report, true }

// copy is what is said of it.
func (l *lying) copy(ctx context.Context) (regain.Copy, bool) {
	return l.inspect.Inspect(ctx, regain.Copy{Assignment: member.Assignment{ID: l.id}})
}

func newLying(t *testing.T, report member.Report) (*world, *lying) {
	t.Helper()
	all, err := postgres.Installed()
	if err != nil || len(all) == 0 {
		testkit.Missing(t, "PostgreSQL: run scripts/install")
	}
	w := newWorld(t, waits)
	l := &lying{Host: w.open(), id: "db-1.m1", report: report}
	l.inspect = &inspector{host: l, ends: map[string]end{}}
	told := member.Assignment{ID: l.id, Scope: "db-1", Name: "m1", Generation: 1, Want: member.Stopped, Major: all[0].Major}
	text, err := json.Marshal(told)
	w.Must(err)
	w.Must(l.MakeMemberDir(l.id))
	w.Must(os.WriteFile(w.AssignedPath(l.id), text, 0o600))
	l.dir = filepath.Join(l.MemberDir(l.id), patroni.DataDir)
	w.Must(postgres.Prepare(t.Context(), all[0], l.UserOf(l.id), l.dir))
	return w, l
}

// A standby that receives nothing has all that is in its WAL, whatever it has replayed, and
// whatever it told last; one that receives has more at any moment.
func TestAStandbyIsAsNewAsItsWAL(t *testing.T) {
	t.Parallel()
	const said = lsn.LSN(0x100)
	_, l := newLying(t, member.Report{Postgres: true, Ready: true, InRecovery: true, Timeline: 1, LSN: said})
	all, err := postgres.Installed()
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := postgres.NewestEnd(t.Context(), all[0], l.UserOf(l.id), l.dir)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := l.copy(t.Context())
	if !ok || c.LSN != want || want <= said || c.Unsettled != "" || c.Primary || c.Streaming || !c.Running {
		t.Errorf("%+v, want its WAL to end at %s", c, want)
	}
	l.report = member.Report{Postgres: true, Ready: true, InRecovery: true, Streaming: true, Timeline: 1, LSN: said}
	if c, ok := l.copy(t.Context()); !ok || c.LSN != said || !c.Streaming {
		t.Errorf("it streams: %+v", c)
	}
	l.report = member.Report{}
	if c, ok := l.copy(t.Context()); !ok || c.Running || c.LSN != want {
		t.Errorf("it rests: %+v", c)
	}
}

// Data that are being made a copy of others' are no copy of their own.
func TestHalfACopyIsNone(t *testing.T) {
	t.Parallel()
	_, l := newLying(t, member.Report{})
	if c, ok := l.copy(t.Context()); !ok || !c.Primary {
		t.Errorf("at rest: %+v", c)
	}
	kept := filepath.Join(filepath.Dir(l.dir), "data.kept")
	if err := errors.Join(os.Rename(l.dir, kept), os.Symlink("data.kept", l.dir)); err != nil {
		t.Fatal(err)
	}
	if c, ok := l.copy(t.Context()); ok {
		t.Errorf("while it is rewound: %+v", c)
	}
	if err := errors.Join(os.Remove(l.dir), os.Rename(kept, l.dir), os.WriteFile(filepath.Join(l.dir, "backup_label"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if c, ok := l.copy(t.Context()); ok {
		t.Errorf("while it is copied: %+v", c)
	}
}

// A restored home is told what the host was told, as it was.
func TestASealIsToldBack(t *testing.T) {
	t.Parallel()
	w, l := newLying(t, member.Report{})
	for range 2 { // what is known of its data since comes with it, too
		last, err := l.Remembered(l.id)
		if err != nil {
			t.Fatal(err)
		}
		last.Generation++
		text := hosttest.SealedText(t, last.Assignment)
		if err := os.WriteFile(w.AssignedPath(l.id), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, ok := l.copy(t.Context()); !ok || string(c.Told) != text || c.Assignment.Generation != last.Generation || c.System == "" {
			t.Errorf("it says %+v", c)
		}
	}
}
