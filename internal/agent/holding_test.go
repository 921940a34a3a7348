package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/member"
	"howdah/internal/regain"
	"howdah/internal/state"
	"howdah/internal/testkit"
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
