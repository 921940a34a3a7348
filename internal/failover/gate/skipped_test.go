package gate

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// history is how /sync came to be what m2 finds, and what its gate decides.
type history struct {
	name         string
	sync         []string // the synchronous states, one after the other
	lead, passed string
	compact      int    // how many of the newest revisions are left; 0: all
	refused      string // "" if the gate lets the member through
	after        string
}

func (h history) decides(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if h.passed != "" {
		s.put(state.Put(state.Passed("db-1"), fence.Passed{Member: h.passed}))
	}
	if h.lead != "" {
		s.put(state.Put(state.Lead("db-1"), map[string]string{"member": h.lead}))
	}
	for _, text := range h.sync {
		s.raw(patroni.SyncKey("db-1"), text)
	}
	if h.compact > 0 {
		_, revision := s.get(patroni.SyncKey("db-1"))
		if _, err := s.store.Client.Compact(t.Context(), revision+1-int64(h.compact)); err != nil {
			t.Fatal(err)
		}
	}
	err := s.pass()
	switch {
	case h.refused == "" && err != nil:
		t.Errorf("refused: %v", err)
	case h.refused != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), h.refused)):
		t.Errorf("%v, want a refusal that says %q", err, h.refused)
	}
	if now, _ := s.get(patroni.SyncKey("db-1")); now != named(h.after) {
		t.Errorf("the synchronous state is %s, want %s", now, named(h.after))
	}
}

// Patroni writes /sync for its member before it asks the gate. If that gate refuses or is killed,
// the state that it wrote is not that of a primary. The gates of other members look behind it.
func TestAStateThatPatroniWroteBeforeARefusalIsPassedOver(t *testing.T) {
	t.Parallel()
	const m1, m3 = `{"leader":"m1","sync_standby":null}`, `{"leader":"m3","sync_standby":null}`
	for _, c := range []history{
		{name: "the primary without standbys, after another one's gate was killed", sync: []string{own, m1, own}, lead: "m2", after: own},
		{name: "… twice, each", sync: []string{own, m1, m1, own, m3, own, own}, lead: "m2", after: own},
		{name: "… of which nothing before is known", sync: []string{own, m1, own}, lead: "m2", compact: 2, after: own},
		{name: "… and there was none before", sync: []string{m1, own}, lead: "m2", after: own},
		{name: "… and it was let through last", sync: []string{own, m1, own}, lead: "m2", passed: "m2", after: own},
		{name: "its own attempt is the first state there was, after the leader of a standby cluster", sync: []string{own}, lead: "m1", after: own},
		{name: "the other one was let through", sync: []string{own, m1, own}, lead: "m2", passed: "m1", refused: "m1, which alone has", after: m1},
		{name: "the other one serves", sync: []string{own, m1, own}, lead: "m1", refused: "m1, which alone has", after: m1},
		{name: "nobody was seen to serve", sync: []string{own, m1, own}, refused: "m1, which alone has", after: m1},
		{name: "the standby of a third one", sync: []string{`{"leader":"m3","sync_standby":"m2"}`, m1, own}, lead: "m3", after: own},
		{name: "… in quorum mode, where Patroni writes nothing", sync: []string{`{"leader":"m3","sync_standby":"m2"}`, m1}, lead: "m3", after: m1},
		{name: "no standby of a third one", sync: []string{m3, m1, own}, lead: "m3", refused: "m3, which alone has", after: m3},
		{name: "no standby of a third one, of which nothing is known", sync: []string{m1, own}, lead: "m3", refused: "m3, which alone has", after: m3},
		{name: "a state with standbys is a primary's", sync: []string{own, `{"leader":"m1","sync_standby":"m3"}`, own}, lead: "m2",
			refused: "m3 confirms", after: `{"leader":"m1","sync_standby":"m3"}`},
	} {
		t.Run(c.name, c.decides)
	}
}

// Two members cannot keep each other out: the state that a refused gate puts back lets the other
// member through.
func TestARefusedMemberLeavesThePrimaryItsWay(t *testing.T) {
	t.Parallel()
	s := newStage(t, nobody, own)
	s.put(state.Put(state.Lead("db-1"), map[string]string{"member": "m1"}))
	if err := s.pass(); !errors.Is(err, ErrRefused) {
		t.Fatalf("%v, want a refusal: m1 alone has every commit", err)
	}
	s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", "m1"))
	s.raw(patroni.SyncKey("db-1"), nobody) // what Patroni of m1 writes before its gate
	asM1 := func(cfg *Config) {
		cfg.Name, cfg.PatroniName, cfg.Own, cfg.Log = "m1", patroni.OwnName("db-1", "m1"), "m1", slog.New(slog.DiscardHandler)
	}
	if err := s.pass(asM1); err != nil {
		t.Errorf("m1 was the primary, and is refused: %v", err)
	}
}

// A promoted member is recorded if another one is known to have served before, even if no primary
// had standbys. Without that record, a state without standbys could not tell whether its member was
// promoted.
func TestAPromotionAfterAnotherOneServedIsOnRecord(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.put(state.Put(state.Lead("db-1"), map[string]string{"member": "m1"}))
	if err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if text, _ := s.get(state.Passed("db-1")); !strings.Contains(text, `"member":"m2"`) {
		t.Errorf("let through last: %s", text)
	}
}
