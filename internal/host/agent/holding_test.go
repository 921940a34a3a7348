package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

// A home that was restored is told which data are here, also of members that it does not
// know, and once more all that it was told before. Nothing is touched.
func TestARestoredHomeIsToldWhatIsHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.run(nil)
	a := w.startPrimary()
	serving := w.lines(a.ID, "data/postmaster.pid")[0]
	for id, files := range map[string][]string{"db-2.m1": {"data/global/pg_control"}, "db-3.m1": nil} {
		for _, f := range append(files, "note") {
			path := filepath.Join(w.Dir, "members", id, f)
			w.must(os.MkdirAll(filepath.Dir(path), 0o700))
			w.must(os.WriteFile(path, make([]byte, 20), 0o600))
		}
	}
	for _, key := range []string{state.Report(hostName, a.ID), state.Host(hostName), state.Assign(hostName, a.ID)} {
		_, err := w.store.Client.Delete(w.Context(), key)
		w.must(err)
	}
	_, err := w.store.Commit(w.Context(), state.Put(state.Hold("db-1"), regain.Hold{Database: "db-1"}), state.Put(state.Restored(), regain.Home{ID: "r1", At: time.Now()}))
	w.must(err)
	testkit.Eventually(t, soon, func() error {
		said, err := state.Get[regain.Holding](w.Context(), w.store, state.Holding(hostName))
		if err != nil {
			return err
		}
		if want := []string{a.ID, "db-2.m1"}; said.Value.Home != "r1" || !slices.Equal(said.Value.Members, want) {
			return fmt.Errorf("%+v, want %q", said.Value, want)
		}
		for id, why := range map[string]string{a.ID: "does not answer", "db-2.m1": "cannot be read"} {
			c, err := state.Get[regain.Copy](w.Context(), w.store, state.HeldCopy(hostName, id))
			if err != nil || c.Value.Home != "r1" || !strings.Contains(c.Value.Unsettled, why) || c.Value.Running != (id == a.ID) {
				return fmt.Errorf("%+v, %w", c.Value, err)
			}
		}
		if _, err := state.Get[member.Report](w.Context(), w.store, state.Report(hostName, a.ID)); err != nil {
			return err
		}
		_, err = state.Get[member.Host](w.Context(), w.store, state.Host(hostName))
		return err
	})
	if now := w.lines(a.ID, "data/postmaster.pid")[0]; now != serving || len(w.lines(a.ID, "starts")) != 1 {
		t.Error("the member was touched")
	}
}

// lying is a member with data of which its runner has told something.
func lying(t *testing.T, report member.Report) (h *holdings, id, dir string) {
	t.Helper()
	all, err := postgres.Installed()
	if err != nil || len(all) == 0 {
		testkit.Missing(t, "PostgreSQL: run scripts/install")
	}
	host, err := os.MkdirTemp("", "howdah-test-") // where PostgreSQL's user can get to
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(host) })
	a := &Host{}
	a.Agent = &Agent{Config: Config{Name: hostName, Dir: host, Kind: a}, members: map[string]*Member{}}
	told := member.Assignment{ID: "db-1.m1", Scope: "db-1", Name: "m1", Generation: 1, Want: member.Stopped, Major: all[0].Major}
	a.users = a.newUsers()
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Chmod(host, 0o711), os.Mkdir(a.Path("members"), 0o711), os.Mkdir(a.Path(assignedDir), 0o700), a.Give(a.MemberDir(told.ID)),
		os.WriteFile(a.assignedPath(told.ID), text, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(a.MemberDir(told.ID), patroni.DataDir)
	if err := postgres.Prepare(t.Context(), all[0], a.UserOf(told.ID), dir); err != nil {
		t.Fatal(err)
	}
	m := &Member{ID: told.ID, publisher: newPublisher(a.Agent)}
	report.ID = told.ID
	m.publisher.publish(report)
	a.members[told.ID] = m
	return &holdings{agent: a.Agent, inspector: a.Inspector()}, told.ID, dir
}

// A standby that receives nothing has all that is in its WAL, whatever it has replayed, and
// whatever it told last; one that receives has more at any moment.
func TestAStandbyIsAsNewAsItsWAL(t *testing.T) {
	t.Parallel()
	const said = lsn.LSN(0x100)
	h, id, dir := lying(t, member.Report{Postgres: true, Ready: true, InRecovery: true, Timeline: 1, LSN: said})
	all, err := postgres.Installed()
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := postgres.NewestEnd(t.Context(), all[0], h.agent.UserOf(id), dir)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := h.copyOf(t.Context(), id)
	if !ok || c.LSN != want || want <= said || c.Unsettled != "" || c.Primary || c.Streaming || !c.Running {
		t.Errorf("%+v, want its WAL to end at %s", c, want)
	}
	h.agent.members[id].publisher.publish(member.Report{ID: id, Postgres: true, Ready: true, InRecovery: true, Streaming: true, Timeline: 1, LSN: said})
	if c, ok := h.copyOf(t.Context(), id); !ok || c.LSN != said || !c.Streaming {
		t.Errorf("it streams: %+v", c)
	}
	h.agent.members[id].publisher.publish(member.Report{ID: id})
	if c, ok := h.copyOf(t.Context(), id); !ok || c.Running || c.LSN != want {
		t.Errorf("it rests: %+v", c)
	}
}

// Data that are being made a copy of others' are no copy of their own.
func TestHalfACopyIsNone(t *testing.T) {
	t.Parallel()
	h, id, dir := lying(t, member.Report{})
	if c, ok := h.copyOf(t.Context(), id); !ok || !c.Primary {
		t.Errorf("at rest: %+v", c)
	}
	kept := filepath.Join(filepath.Dir(dir), keptDir)
	if err := errors.Join(os.Rename(dir, kept), os.Symlink(keptDir, dir)); err != nil {
		t.Fatal(err)
	}
	if c, ok := h.copyOf(t.Context(), id); ok {
		t.Errorf("while it is rewound: %+v", c)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(kept, dir), os.WriteFile(filepath.Join(dir, "backup_label"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if c, ok := h.copyOf(t.Context(), id); ok {
		t.Errorf("while it is copied: %+v", c)
	}
}

// Hosts that a restored home has forgotten are known until it has taken its databases
// over; those that are forgotten otherwise are not.
func TestAHostRemembersTheOthers(t *testing.T) {
	t.Parallel()
	home := hometest.New(t)
	a := &Agent{Config: Config{Name: hostName, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, Store: home.Store}
	put := func(ops ...state.Op) {
		t.Helper()
		if _, err := home.Store.Commit(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	knows := func(want ...string) {
		t.Helper()
		h := &holdings{agent: a}
		if err := h.list(t.Context()); err != nil || !slices.Equal(h.hosts, want) {
			t.Errorf("it knows %q, %v, want %q", h.hosts, err, want)
		}
	}
	put(state.Put(state.Host("a"), member.Host{}), state.Put(state.Host("b"), member.Host{}))
	knows("a", "b")
	put(state.Delete(state.Host("b")), state.Put(state.Host("c"), member.Host{}))
	knows("a", "c")
	put(state.Delete(state.Host("c")), state.Put(state.Restored(), regain.Home{ID: "r1"}), state.Put(state.Hold("db-1"), regain.Hold{}), state.Put(state.Host("d"), member.Host{}))
	knows("a", "c", "d")
	knows("a", "c", "d") // also when it was started again
	put(state.Put(state.Restored(), regain.Home{ID: "r2"}))
	knows("a", "c", "d")
	put(state.Delete(state.Hold("db-1")))
	knows("a", "d")
	put(state.Put(state.Hold("db-1"), regain.Hold{}), state.Delete(state.Host("d")))
	knows("a")
	if err := os.WriteFile(a.Path(knownFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	knows("a")
}
