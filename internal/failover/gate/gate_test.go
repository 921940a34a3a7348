package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/testkit/patience"
)

const (
	anyOfTwo = `{"leader":"m1","sync_standby":"m2,m3","quorum":1}`
	onlyM2   = `{"leader":"m1","sync_standby":"m2"}`
	nobody   = `{"leader":"m1","sync_standby":null}`
	// own is the state that Patroni of m2 writes in priority mode before it asks its gate.
	own = `{"leader":"m2","sync_standby":null}`
)

// stage is a real etcd with members that answer with their positions. m2 has the leader key and
// wants to be promoted.
type stage struct {
	*testing.T
	store *state.Store
	at    map[string]Position // by URL
	// received has what PostgreSQL of a member answers, by address: a position as int, or an error.
	// A member that is not in it answers as its Patroni does.
	received map[string]any
	asked    func(url string) // called before a member answers
}

func newStage(t *testing.T, sync ...string) *stage {
	t.Helper()
	s := &stage{T: t, store: etcdtest.Store(t), at: map[string]Position{}}
	for _, m := range []string{"m1", "m2", "m3"} {
		s.raw(patroni.MemberKey("db-1", patroni.OwnName("db-1", m)), `{"api_url":"`+m+`","conn_url":"postgres://`+m+`/postgres","role":"replica"}`)
		s.at[m] = Position{LSN: 100, Timeline: 1, Recovery: true}
	}
	for _, text := range sync {
		s.raw(patroni.SyncKey("db-1"), text)
	}
	s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", "m2"))
	return s
}

// named replaces the members' names in a text by those that Patroni uses.
func named(text string) string {
	return strings.NewReplacer("m1", "db-1.m1", "m2", "db-1.m2", "m3", "db-1.m3", "m4", "db-1.m4").Replace(text)
}

func (s *stage) raw(key, value string) {
	s.Helper()
	if key == patroni.SyncKey("db-1") {
		value = named(value)
	}
	if _, err := s.store.Client.Put(s.Context(), key, value); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) put(ops ...state.Op) {
	s.Helper()
	if _, err := s.store.Commit(s.Context(), ops...); err != nil {
		s.Fatal(err)
	}
}

// get returns a key's value and the revision of its last change; "" and 0 if there is no such key.
func (s *stage) get(key string) (string, int64) {
	s.Helper()
	answer, err := s.store.Client.Get(s.Context(), key)
	if err != nil {
		s.Fatal(err)
	}
	if len(answer.Kvs) == 0 {
		return "", 0
	}
	return string(answer.Kvs[0].Value), answer.Kvs[0].ModRevision
}

// pass runs the gate of m2 without patience.
func (s *stage) pass(change ...func(*Config)) error {
	s.Helper()
	cfg := Config{
		Database: "db-1", Name: "m2", PatroniName: patroni.OwnName("db-1", "m2"), Own: "m2", Client: s.store.Client, Log: slog.New(slog.DiscardHandler),
		Ask: func(_ context.Context, url string) (Position, error) {
			if s.asked != nil {
				s.asked(url)
			}
			at, ok := s.at[url]
			if !ok {
				return Position{}, fmt.Errorf("nobody at %q", url)
			}
			return at, nil
		},
		Received: func(_ context.Context, address string) (int64, error) {
			switch said := s.received[address].(type) {
			case error:
				return 0, said
			case int:
				return int64(said), nil
			}
			return s.at[address].LSN, nil
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	return Pass(s.Context(), cfg)
}

func against(leader string, change func(*fence.Case)) state.Op {
	c := fence.Case{ID: "db-1-" + leader, Phase: fence.Revoked, Leadership: fence.Leadership{Database: "db-1", Leader: leader}}
	if change != nil {
		change(&c)
	}
	return state.Put(state.Fence("db-1", leader), c)
}

func cutOf(of, member string) state.Op {
	return state.Put(state.Cut("db-1-"+of, member), fence.CutReport{Case: "db-1-" + of, Member: member, How: "kernel"})
}

func dead(member string) state.Op {
	return state.Put(state.Death("db-1", member), fence.Death{Database: "db-1", Member: member, Proof: fence.Proof{Method: "killed"}})
}

func proved(method string) func(*fence.Case) {
	return func(c *fence.Case) { c.Proof.Method = method }
}

// TestGate checks who may be promoted, depending on what is in etcd and on the members' positions.
func TestGate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		sync    []string // the synchronous states, one after the other
		prepare func(s *stage)
		refused string // what the refusal says; "" if the gate lets the member through
		after   string // the synchronous state afterwards; "" for the last one of sync
	}{
		{name: "no synchronous state: a first promotion, an asynchronous instance"},
		{name: "no primary yet", sync: []string{`{"leader":null,"sync_standby":null}`}},
		{name: "its own, in quorum mode", sync: []string{`{"leader":"m2","sync_standby":"m1,m3","quorum":1}`}},
		{name: "its own, in priority mode, overwritten", sync: []string{`{"leader":"m2","sync_standby":"m1"}`, own}},
		{name: "its own, when nobody else was there", sync: []string{own, own}},
		{name: "the one standby", sync: []string{onlyM2, own}},
		{name: "the one standby, whose gate was killed twice", sync: []string{onlyM2, own, own, own}},
		{name: "one of two that both confirm", sync: []string{`{"leader":"m1","sync_standby":"m2,m3"}`, own}},
		{name: "taken out of the set in the last moment", sync: []string{onlyM2, nobody, own}, refused: "m1, which alone has", after: nobody},
		{name: "… and its gate was killed before", sync: []string{onlyM2, nobody, own, own}, refused: "m1, which alone has", after: nobody},
		{name: "replaced in the set in the last moment", sync: []string{onlyM2, `{"leader":"m1","sync_standby":"m3"}`, own},
			refused: "m3 confirms", after: `{"leader":"m1","sync_standby":"m3"}`},
		{name: "never in the set", sync: []string{nobody}, refused: "m1, which alone has"},
		{name: "another one has the key", sync: []string{anyOfTwo}, refused: "leader key is m3's",
			prepare: func(s *stage) { s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", "m3")) }},
		{name: "any of two, nobody cut off", sync: []string{anyOfTwo}, refused: "m1 may still acknowledge writes that m3 confirms"},
		{name: "… itself cut off alone", sync: []string{anyOfTwo}, refused: "m3 confirms",
			prepare: func(s *stage) { s.put(against("m1", nil), cutOf("m1", "m2")) }},
		{name: "… the other one cut off", sync: []string{anyOfTwo}, prepare: func(s *stage) { s.put(against("m1", nil), cutOf("m1", "m3")) }},
		{name: "… in a case that is closed", sync: []string{anyOfTwo}, refused: "m3 confirms", prepare: func(s *stage) { s.put(cutOf("m1", "m3")) }},
		{name: "… from another primary", sync: []string{anyOfTwo}, refused: "m3 confirms",
			prepare: func(s *stage) { s.put(against("m4", nil), cutOf("m4", "m3")) }},
		{name: "… by the age of a lease, as older releases have it", sync: []string{anyOfTwo}, refused: "m3 confirms",
			prepare: func(s *stage) { s.put(against("m1", proved("lease"))) }},
		{name: "… and ahead", sync: []string{anyOfTwo}, refused: "m3 is ahead", prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			s.at["m3"] = Position{LSN: 101, Timeline: 1, Recovery: true}
		}},
		{name: "… and on a newer timeline", sync: []string{anyOfTwo}, refused: "m3 is ahead", prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			s.at["m3"] = Position{LSN: 90, Timeline: 2, Recovery: true}
		}},
		{name: "… and a primary itself", sync: []string{anyOfTwo}, refused: "m3 takes writes", prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			s.at["m3"] = Position{Timeline: 1}
		}},
		{name: "… and does not say where it is", sync: []string{anyOfTwo}, refused: "m3 does not answer", prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			delete(s.at, "m3")
		}},
		{name: "… and received more than its Patroni says", sync: []string{anyOfTwo}, refused: "m3 is ahead", prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			s.received = map[string]any{"m3": 101}
		}},
		{name: "… and was started anew", sync: []string{anyOfTwo}, refused: "m3 was started a moment ago", prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			s.received = map[string]any{"m3": fmt.Errorf("ask: %w", errReplays)}
		}},
		{name: "… and its PostgreSQL does not answer", sync: []string{anyOfTwo}, refused: "m3 does not answer", prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			s.received = map[string]any{"m3": errNoPosition}
		}},
		{name: "… and the own one was started anew", sync: []string{anyOfTwo}, prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			s.received = map[string]any{"m2": errReplays}
		}},
		{name: "… and the own position is not known", sync: []string{anyOfTwo}, refused: "its own position", prepare: func(s *stage) {
			s.put(against("m1", nil), cutOf("m1", "m3"))
			delete(s.at, "m2")
		}},
		{name: "the old primary is dead", sync: []string{anyOfTwo}, prepare: func(s *stage) { s.put(dead("m1")) }},
		{name: "… and another standby ahead", sync: []string{anyOfTwo}, refused: "m3 is ahead", prepare: func(s *stage) {
			s.put(dead("m1"))
			s.at["m3"] = Position{LSN: 101, Timeline: 1, Recovery: true}
		}},
		{name: "another member is dead", sync: []string{anyOfTwo}, refused: "m3 confirms", prepare: func(s *stage) { s.put(dead("m4")) }},
		{name: "its host was switched off", sync: []string{anyOfTwo}, prepare: func(s *stage) { s.put(against("m1", proved("stonith"))) }},
		{name: "an operator swore that", sync: []string{anyOfTwo}, prepare: func(s *stage) { s.put(against("m1", proved("operator"))) }},
		{name: "a member that confirms no commits", sync: []string{`{"leader":"m1","sync_standby":"m3,m4","quorum":1}`}, refused: "m4 confirms",
			prepare: func(s *stage) { s.put(against("m1", nil), cutOf("m1", "m3")) }},
		{name: "… when all who do are cut off", sync: []string{`{"leader":"m1","sync_standby":"m3","quorum":0}`},
			prepare: func(s *stage) { s.put(against("m1", nil), cutOf("m1", "m3")) }},
		{name: "another one was let through, and was not heard of since", sync: []string{anyOfTwo}, refused: "m3 was let through last",
			prepare: func(s *stage) {
				sync := clientv3.OpPut(patroni.SyncKey("db-1"), named(anyOfTwo))
				passed := clientv3.OpPut(state.Passed("db-1"), `{"member":"m3","old":"m1"}`)
				if _, err := s.store.Client.Txn(s.Context()).Then(sync, passed).Commit(); err != nil {
					s.Fatal(err)
				}
				s.put(dead("m1"))
			}},
		{name: "… nor of the primary before, which wants to lead again", sync: []string{`{"leader":"m2","sync_standby":"m1,m3","quorum":1}`},
			refused: "m3 was let through last", prepare: func(s *stage) {
				sync := clientv3.OpPut(patroni.SyncKey("db-1"), named(`{"leader":"m2","sync_standby":"m1,m3","quorum":1}`))
				passed := clientv3.OpPut(state.Passed("db-1"), `{"member":"m3","old":"m2"}`)
				if _, err := s.store.Client.Txn(s.Context()).Then(sync, passed).Commit(); err != nil {
					s.Fatal(err)
				}
			}},
		{name: "an operator swore that, and the primary came back and leads since", sync: []string{anyOfTwo}, refused: "m3 confirms",
			prepare: func(s *stage) {
				s.put(against("m1", proved("operator")))
				s.put(state.Put(state.Passed("db-1"), fence.Passed{Member: "m1", Old: "m1"}))
			}},
		{name: "… and was lost again, and switched off", sync: []string{anyOfTwo}, prepare: func(s *stage) {
			s.put(state.Put(state.Passed("db-1"), fence.Passed{Member: "m1", Old: "m1"}))
			s.put(against("m1", proved("stonith")))
		}},
		{name: "a judge that stood still writes a case of the time before again", sync: []string{anyOfTwo}, refused: "m3 confirms",
			prepare: func(s *stage) {
				s.put(state.Put(state.Passed("db-1"), fence.Passed{Member: "m1", Old: "m1", LeaderRevision: 7}))
				s.put(against("m1", func(c *fence.Case) { c.Proof.Method, c.Leadership.LeaderRevision = "operator", 3 }))
			}},
		{name: "… and a case of the time since says nothing else", sync: []string{anyOfTwo},
			prepare: func(s *stage) {
				s.put(against("m1", func(c *fence.Case) { c.Leadership.LeaderRevision = 7 }), cutOf("m1", "m3"))
				s.put(state.Put(state.Passed("db-1"), fence.Passed{Member: "m1", Old: "m1", LeaderRevision: 7}))
			}},
		{name: "… but the old primary has led on", sync: []string{anyOfTwo}, prepare: func(s *stage) {
			s.put(state.Put(state.Passed("db-1"), fence.Passed{Member: "m3", Old: "m1"}), dead("m1"))
			s.raw(patroni.SyncKey("db-1"), anyOfTwo)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.sync...)
			if c.prepare != nil {
				c.prepare(s)
			}
			err := s.pass()
			switch {
			case c.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.refused != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("%v, want a refusal that says %q", err, c.refused)
			}
			want := c.after
			if want == "" && len(c.sync) > 0 {
				want = c.sync[len(c.sync)-1]
			}
			if now, _ := s.get(patroni.SyncKey("db-1")); now != named(want) {
				t.Errorf("the synchronous state is %s, want %s", now, named(want))
			}
			if plea, _ := s.get(state.Plea("db-1")); (plea != "") != (c.refused != "" && !strings.Contains(c.refused, "leader key")) {
				t.Errorf("the plea is %q", plea)
			}
		})
	}
}

// With its consent the gate writes the old primary's state again, deletes a death of its own
// member, and records whom it let through.
func TestWhatConsentWrites(t *testing.T) {
	t.Parallel()
	s := newStage(t, anyOfTwo)
	s.put(dead("m1"), dead("m2"), state.Put(state.Plea("db-1"), fence.Plea{Member: "m2"}))
	_, before := s.get(patroni.SyncKey("db-1"))
	if err := s.pass(); err != nil {
		t.Fatal(err)
	}
	_, after := s.get(patroni.SyncKey("db-1"))
	if after == before {
		t.Error("a compare-and-swap of the old primary would still succeed")
	}
	passed, revision := s.get(state.Passed("db-1"))
	if !strings.Contains(passed, `"member":"m2","old":"m1"`) || revision != after {
		t.Errorf("let through: %s at %d, want it at %d", passed, revision, after)
	}
	if text, _ := s.get(state.Death("db-1", "m2")); text != "" {
		t.Error("who is promoted is dead still")
	}
	if text, _ := s.get(state.Death("db-1", "m1")); text == "" {
		t.Error("the old primary's death is forgotten")
	}
	if text, _ := s.get(state.Plea("db-1")); text != "" {
		t.Error("it still waits")
	}
}

// Without a synchronous state nothing is counted. The gate still replaces the record of who was let
// through last, and deletes a death of the promoted member.
func TestAPromotionWithoutStandbysIsRememberedToo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if text, _ := s.get(state.Passed("db-1")); text != "" {
		t.Errorf("there was nobody to tell it from: %s", text)
	}
	s.put(dead("m2"), state.Put(state.Passed("db-1"), fence.Passed{Member: "m1", Old: "m3"}))
	if err := s.pass(); err != nil {
		t.Fatal(err)
	}
	_, leads := s.get(patroni.LeaderKey("db-1"))
	if text, _ := s.get(state.Passed("db-1")); !strings.Contains(text, `"member":"m2"`) || !strings.Contains(text, fmt.Sprintf(`"leader_revision":%d`, leads)) {
		t.Errorf("let through last: %s", text)
	}
	if text, _ := s.get(state.Death("db-1", "m2")); text != "" {
		t.Error("who is promoted is dead still")
	}
	if text, _ := s.get(patroni.SyncKey("db-1")); text != "" {
		t.Errorf("a synchronous state was written: %s", text)
	}
}

// If anything that was counted changes before the consent, there is no consent.
func TestConsentHoldsOnlyForWhatWasCounted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *stage){
		"the case is closed, and its cuts lifted":   func(s *stage) { s.put(state.Delete(state.Fence("db-1", "m1"))) },
		"the old primary changes its standbys":      func(s *stage) { s.raw(patroni.SyncKey("db-1"), `{"leader":"m1","sync_standby":"m2,m3,m4","quorum":2}`) },
		"the leader key ends, and is another one's": func(s *stage) { s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", "m3")) },
		"another one is seen to have served":        func(s *stage) { s.put(state.Put(state.Lead("db-1"), map[string]string{"member": "m3"})) },
		"… or is its own again": func(s *stage) {
			s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", "m2"))
			s.put(state.Delete(state.Cut("db-1-m1", "m3")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, anyOfTwo)
			s.put(against("m1", nil), cutOf("m1", "m3"))
			done := false
			s.asked = func(url string) {
				if url == "m3" && !done {
					done = true
					change(s)
				}
			}
			if err := s.pass(); err == nil {
				t.Error("it passes")
			}
			if text, _ := s.get(state.Passed("db-1")); text != "" {
				t.Errorf("consent was written: %s", text)
			}
		})
	}
}

// A member was let through, led alone and crashed. Its gate then finds its own state in history,
// and not that of the primary before it.
func TestAPrimaryThatWasLetThroughFindsItsOwnState(t *testing.T) {
	t.Parallel()
	s := newStage(t, anyOfTwo, own)
	s.put(dead("m1"))
	if err := s.pass(); err != nil {
		t.Fatal(err)
	}
	s.put(state.Delete(state.Death("db-1", "m1")))
	s.raw(patroni.SyncKey("db-1"), own) // what Patroni of m2 writes when it comes back
	if err := s.pass(); err != nil {
		t.Errorf("the primary itself is refused: %v", err)
	}
}

// After etcd was compacted, only the record of who served last tells whose state was overwritten.
func TestCompactedHistory(t *testing.T) {
	t.Parallel()
	const m1Alone = `{"leader":"m1","sync_standby":null}`
	for _, c := range []history{
		{name: "it led alone for long", sync: []string{`{"leader":"m2","sync_standby":"m1"}`, own}, lead: "m2", after: own, compact: 1},
		{name: "it led alone from the beginning", sync: []string{own}, after: own, compact: 1},
		{name: "its gate was killed, and another one had led", sync: []string{nobody, own}, lead: "m1", refused: "m1, which alone has", after: m1Alone, compact: 1},
		{name: "… with it in the set, which nobody knows any more", sync: []string{onlyM2, own}, lead: "m1", refused: "m1, which alone has", after: m1Alone, compact: 1},
		{name: "nobody was seen to serve", sync: []string{nobody, own}, refused: "forgotten", after: own, compact: 1},
		{name: "another one was let through since", sync: []string{nobody, own}, lead: "m2", passed: "m3", refused: "forgotten", after: own, compact: 1},
		{name: "it led alone, and was let through", sync: []string{onlyM2, own, own}, lead: "m2", passed: "m2", after: own, compact: 1},
	} {
		t.Run(c.name, c.decides)
	}
}

// The old primary is down and was named by an older release. The gate takes its name from the
// failsafe list: under a name that no member has, Patroni would let nobody come back.
func TestCompactedHistoryNamesTheOldPrimaryAsPatroniDoes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, m := range []string{"m1", "m3"} {
		if _, err := s.store.Client.Delete(s.Context(), patroni.MemberKey("db-1", patroni.OwnName("db-1", m))); err != nil {
			t.Fatal(err)
		}
	}
	s.put(state.Put(state.Lead("db-1"), map[string]string{"member": "m1"}))
	s.raw(patroni.FailsafeKey("db-1"), `{"m1":"m1","db-1.m2":"m2"}`)
	s.raw(patroni.SyncKey("db-1"), nobody)
	s.raw(patroni.SyncKey("db-1"), own)
	_, revision := s.get(patroni.SyncKey("db-1"))
	if _, err := s.store.Client.Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if err := s.pass(); !errors.Is(err, ErrRefused) {
		t.Errorf("%v, want a refusal", err)
	}
	if now, _ := s.get(patroni.SyncKey("db-1")); now != `{"leader":"m1","sync_standby":null}` {
		t.Errorf("the synchronous state is %s", now)
	}
}

// After a restoration, no member is promoted of a database that is held or that the home does not
// know. What etcd says about such a database is out of date.
func TestAfterARestoration(t *testing.T) {
	t.Parallel()
	restored := state.Put(state.Restored(), regain.Home{ID: "1"})
	known := state.Put(state.Layout("db-1"), map[string]string{"id": "db-1"})
	for name, c := range map[string]struct {
		ops []state.Op
		may bool
	}{
		"no restoration": {nil, true},
		"taken over":     {[]state.Op{restored, known}, true},
		"not known":      {[]state.Op{restored}, false},
		"not taken over": {[]state.Op{restored, known, state.Put(state.Hold("db-1"), regain.Hold{})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put(append(c.ops, state.Put(state.Notice("db-1"), 1))...)
			err := s.pass()
			if (err == nil) != c.may || err != nil && !errors.Is(err, ErrRefused) {
				t.Error(err)
			}
		})
	}
}

// A restored home took the database over with one member. That member has every commit, even before
// it has served. Another member has not.
func TestWhoWasTakenOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sync    []string
		refused string
	}{
		"the one":            {[]string{regain.NobodyInSync, own}, ""},
		"… in priority mode": {[]string{regain.NobodyInSync, own, own}, ""},
		"another one":        {[]string{regain.NobodyInSync, nobody, own}, "m1, which alone has"},
		"nobody was so far":  {[]string{regain.NobodyInSync}, "held, which alone has"},
		"with a life before": {[]string{onlyM2, regain.NobodyInSync, own}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.sync...)
			err := s.pass()
			if c.refused == "" && err != nil || c.refused != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%v, want %q", err, c.refused)
			}
		})
	}
}

// A gate that waits says who is missing, and lets its member through once that one is cut off.
func TestAGateWaitsForTheCut(t *testing.T) {
	t.Parallel()
	s := newStage(t, anyOfTwo)
	done := make(chan error, 1)
	go func() { done <- s.pass(func(c *Config) { c.Patience = patience.For(30 * time.Second) }) }()
	plea := awaitPlea(s)
	if plea.Member != "m2" || plea.Old.Leader != "m1" || fmt.Sprint(plea.Missing) != "[m3]" || !strings.Contains(plea.Why, "m3") {
		t.Errorf("the plea is %+v", plea)
	}
	s.put(against("m1", nil), cutOf("m1", "m3"))
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func awaitPlea(s *stage) fence.Plea {
	s.Helper()
	watch := s.store.Client.Watch(s.Context(), state.Plea("db-1"), clientv3.WithRev(1))
	select {
	case <-watch:
	case <-time.After(patience.For(10 * time.Second)):
		s.Fatal("it does not say that it waits")
	}
	r, err := state.Get[fence.Plea](s.Context(), s.store, state.Plea("db-1"))
	if err != nil {
		s.Fatal(err)
	}
	return r.Value
}

// The judge found that only m3 may be promoted. So m2 is refused at once, however patient its gate
// is.
func TestAGateMakesRoom(t *testing.T) {
	t.Parallel()
	s := newStage(t, anyOfTwo)
	s.put(against("m1", func(c *fence.Case) { c.Candidates = []string{"m3"} }), cutOf("m1", "m2"))
	began := time.Now()
	err := s.pass(func(c *Config) { c.Patience = time.Hour })
	if !errors.Is(err, ErrRefused) || time.Since(began) > patience.For(10*time.Second) {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestAGateWithoutEtcdRefuses(t *testing.T) {
	t.Parallel()
	s := newStage(t, onlyM2, own)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Pass(ctx, Config{Database: "db-1", Name: "m2", Client: s.store.Client, Log: slog.New(slog.DiscardHandler)})
	if err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("%v, want an error that is no verdict", err)
	}
	for _, damaged := range []string{patroni.SyncKey("db-1"), state.Fence("db-1", "m1"), state.Cut("db-1-x", "m3"), state.Death("db-1", "m1"), state.Passed("db-1")} {
		s := newStage(t, onlyM2, own)
		s.raw(damaged, "{")
		if err := s.pass(); err == nil {
			t.Errorf("%s is damaged, and it passes", damaged)
		}
	}
}
