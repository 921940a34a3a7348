package agent

import (
	"log/slog"
	"os"
	"slices"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/hosttest"
)

// Hosts that a restored home has forgotten are known until it has taken its databases
// over; those that are forgotten otherwise are not.
func TestAHostRemembersTheOthers(t *testing.T) {
	t.Parallel()
	home := hometest.New(t)
	a := &Agent{Config: Config{Name: hosttest.Name, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, Store: home.Store}
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
