package gate

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// as makes the gate that of another member than m2.
func as(name string) func(*Config) {
	return func(cfg *Config) {
		cfg.Name, cfg.PatroniName, cfg.Own, cfg.Log = name, patroni.OwnName("db-1", name), name, slog.New(slog.DiscardHandler)
	}
}

// A fence against a member, from an earlier time as primary, does not count for a later time. This
// also holds if it was promoted in between without a synchronous state.
func TestAFenceDoesNotOutliveAPromotionWithoutStandbys(t *testing.T) {
	t.Parallel()
	for name, earlier := range map[string]state.Op{
		"its death":                      dead("m2"),
		"an operator's word on its host": against("m2", func(c *fence.Case) { c.Proof.Method, c.Leadership.LeaderRevision = "operator", 1 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put(earlier, state.Put(state.Lead("db-1"), map[string]string{"member": "m2"}))
			if err := s.pass(); err != nil {
				t.Fatal(err)
			}
			s.raw(patroni.SyncKey("db-1"), `{"leader":"m2","sync_standby":"m1,m3","quorum":1}`)
			s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", "m1"))
			if err := s.pass(as("m1")); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "m2 may still acknowledge writes that m3 confirms") {
				t.Errorf("%v, want a refusal: m2 runs", err)
			}
		})
	}
}

// In quorum mode a member was let through, and nobody has heard from it since. Then the mode
// changes. Patroni now writes a state of its own before each gate, and a refused gate puts the
// former state back. The record of who was let through must survive that.
func TestWhoWasLetThroughIsRememberedWhenTheModeChanges(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"to the gate of another standby":       named(`{"leader":"m3","sync_standby":"m1,m2","quorum":1}`),
		"to the gate of the primary before it": named(`{"leader":"m2","sync_standby":"m1,m3","quorum":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			const passed = `{"member":"m1","old":"?","later":true}`
			consent := []clientv3.Op{clientv3.OpPut(patroni.SyncKey("db-1"), text), clientv3.OpPut(state.Passed("db-1"), passed)}
			if _, err := s.store.Client.Txn(t.Context()).Then(consent...).Commit(); err != nil {
				t.Fatal(err)
			}
			s.put(dead("m3"))
			for range 3 {
				s.raw(patroni.SyncKey("db-1"), own)
				if err := s.pass(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "m1 was let through last") {
					t.Errorf("%v, want a refusal: m1 may be the primary", err)
				}
				if now, _ := s.get(patroni.SyncKey("db-1")); now != text {
					t.Errorf("the synchronous state is %s", now)
				}
				if now, _ := s.get(state.Passed("db-1")); now != passed {
					t.Errorf("let through last: %s", now)
				}
			}
		})
	}
}
