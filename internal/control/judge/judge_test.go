package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

func TestALostPrimaryIsFencedProvedAndRevoked(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	of := c.phase(fence.Revoked)
	if leader, _ := c.leader(); leader != "" {
		t.Errorf("%s leads after the revocation", leader)
	}
	c.knows("a", false)
	c.knows("b", true)
	all := c.incidents()
	if len(all) != 1 {
		t.Fatalf("%d incidents", len(all))
	}
	i := all[0]
	if i.Kind != fence.Failover || i.Member != "m1" || i.Host != "a" || i.Proof.Method != "quorum" || len(i.Evidence) != 3 || !i.Revoked.Equal(of.RevokedAt) {
		t.Errorf("incident %+v", i)
	}
	if i.Fenced.Before(i.Detected) || i.Revoked.Before(i.Fenced) {
		t.Errorf("the order is not detected, fenced, revoked: %s, %s, %s", i.Detected, i.Fenced, i.Revoked)
	}
	c.raw(patroni.LeaderKey(database), patroni.OwnName(database, "m2"))
	// The cut lasts as long as the old primary may write.
	c.host("a", heard)
	c.report(true, false)
	c.knows("a", true)
	c.phase(fence.Revoked)
	c.report(true, true)
	c.phase("")
	for _, prefix := range []string{state.WitnessRoot, state.CutRoot} {
		testkit.Eventually(t, 5*time.Second, func() error {
			if left := c.cache.Keys(prefix); len(left) > 0 {
				return fmt.Errorf("left: %q", left)
			}
			return nil
		})
	}
}

func TestAHostThatIsHeardAgainIsLetGo(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	_, before := c.leader()
	// Its standbys' hosts still reach the primary, so that the case stays open.
	for _, h := range []string{"b", "c"} {
		c.host(h, func(h *fakeHost) { h.patroni, h.postgres = true, true })
	}
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	c.phase(fence.Suspected)
	c.knows("a", false)
	c.host("a", heard)
	c.phase("")
	if leader, after := c.leader(); leader != "m1" || after != before {
		t.Errorf("%s leads since revision %d, want m1 since %d", leader, after, before)
	}
	if all := c.incidents(); len(all) > 0 {
		t.Errorf("incidents %+v", all)
	}
}

func TestAPrimaryThatNobodyCanReplaceIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newCourt(t, `{"leader":"m1","sync_standby":"","quorum":0}`)
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	c.knows("a", false)
	// The case would be opened before the host counts as lost.
	if _, _, open := c.cache.Raw(state.Fence(database, "m1")); open {
		t.Error("a case was opened for a primary without a standby in sync")
	}
	if leader, _ := c.leader(); leader != "m1" {
		t.Errorf("%q leads", leader)
	}
}

func TestOneWitnessThatIsSilentItselfDoesNotMatter(t *testing.T) {
	t.Parallel()
	c := newCourt(t, `{"leader":"m1","sync_standby":"m2","quorum":0}`)
	c.judge(nil)
	c.knows("a", true)
	c.host("c", silent)
	c.host("a", silent)
	c.phase(fence.Revoked)
	if all := c.incidents(); len(all) != 1 || !strings.Contains(all[0].Proof.Text, "m2 on b") {
		t.Errorf("incidents %+v", all)
	}
}

func TestANewJudgeListensBeforeItJudges(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.host("a", silent)
	c.judge(nil)
	c.knows("b", true)
	c.knows("a", false)
	of := c.phase(fence.Revoked)
	live, err := state.Load[member.Liveness](c.cache, state.Live("a"))
	// What is written down is by the clock, which may be slewed a little meanwhile.
	warm := c.pulse.since.Add(warmUp - 10*time.Millisecond)
	if err != nil || live.Value.Since.Before(warm) || of.Opened.Before(warm) {
		t.Errorf("listened since %s, judged a host that was not heard yet at %s, opened its case at %s, %v", c.pulse.since, live.Value.Since, of.Opened, err)
	}
}

func TestTheNextJudgeGoesOnWithACase(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	for _, h := range []string{"b", "c"} {
		c.host(h, func(h *fakeHost) { h.cuts = false })
	}
	_, stop := c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	first := c.phase(fence.Cutting)
	stop()
	for _, h := range []string{"b", "c"} {
		c.host(h, func(h *fakeHost) { h.cuts = true })
	}
	c.judge(nil)
	if second := c.phase(fence.Revoked); second.ID != first.ID {
		t.Errorf("case %s, want %s", second.ID, first.ID)
	}
	c.host("a", heard)
	c.report(false, false)
	c.phase("")
}

func TestARevocationThatWasNotWrittenDownKeepsTheCut(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	tr.c.Cut = time.Now().UTC()
	c.host("a", silent)
	c.put(state.Put(state.Fence(database, "m1"), tr.c))
	// The judge before revoked, and died.
	if err := fence.Revoke(t.Context(), c.store.Client, tr.c.Leadership, fence.Proof{Method: "quorum"}); err != nil {
		t.Fatal(err)
	}
	c.raw(patroni.LeaderKey(database), patroni.OwnName(database, "m2"))
	c.judge(nil)
	if of := c.phase(fence.Revoked); of.RevokedAt.IsZero() {
		t.Error("the time of the revocation is not there")
	}
	if leader, _ := c.leader(); leader != "m2" {
		t.Errorf("%q leads: the new primary was revoked", leader)
	}
}

func TestACaseOfADeletedDatabaseIsClosed(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	tr.c.Phase = fence.Revoked
	c.put(state.Put(state.Fence(database, "m1"), tr.c), state.Delete(state.Layout(database)))
	c.judge(nil)
	c.phase("")
}

func TestAPrimaryThatWonItsKeyBackIsLetGo(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	c.phase(fence.Revoked)
	c.host("a", heard)
	c.knows("a", true)
	c.raw(patroni.LeaderKey(database), patroni.OwnName(database, "m1"))
	c.phase("")
}

func TestTheCutEndsWithItsMember(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	c.phase(fence.Revoked)
	layout, err := state.Load[plan.Layout](c.cache, state.Layout(database))
	if err != nil {
		t.Fatal(err)
	}
	// Its host was forgotten, and the member with it.
	rest := layout.Value
	rest.Members = rest.Members[1:]
	c.put(state.Put(state.Layout(database), rest))
	c.phase("")
}

// The cut of the first lasts, and does not hide that the second is lost too.
func TestASecondPrimaryIsLostWhileTheFirstIsAway(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	first := c.phase(fence.Revoked)
	c.raw(patroni.SyncKey(database), `{"leader":"m2","sync_standby":"m3","quorum":0}`)
	c.leads("m2")
	c.host("b", silent)
	second := c.phaseOf("m2", fence.Revoked)
	if second.ID == first.ID || second.Host != "b" || !strings.Contains(second.Proof.Text, "m3 on c") {
		t.Errorf("case %+v", second)
	}
	if again := c.phase(fence.Revoked); again.ID != first.ID {
		t.Errorf("the first case became %s", again.ID)
	}
	c.raw(patroni.LeaderKey(database), patroni.OwnName(database, "m3"))
	c.host("a", heard)
	c.report(true, true)
	c.phase("")
	c.phaseOf("m2", fence.Revoked)
}

// A report from before the revocation does not lift the cut, whatever its clock says.
func TestAnOldReportDoesNotLiftTheCut(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.put(state.Put(state.Report("a", database+".m1"), member.Report{
		ID: database + ".m1", Host: "a", At: time.Now().Add(time.Hour).UTC(),
	}))
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	of := c.phase(fence.Revoked)
	c.raw(patroni.LeaderKey(database), patroni.OwnName(database, "m2"))
	c.host("a", heard)
	c.knows("a", true)
	c.put(state.Put(state.Incident(database, "told"), fence.Incident{Kind: fence.WALEnd, Database: database, Revoked: of.RevokedAt}))
	testkit.Always(t, time.Second, func() error {
		_, err := state.Load[fence.Case](c.cache, state.Fence(database, "m1"))
		return err
	})
	c.report(false, false)
	c.phase("")
}

func TestACaseThatWasNotClosedIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.judge(nil)
	c.knows("a", true)
	left := c.trial().c
	c.put(state.Put(state.Fence(database, "m1"), left), state.Put(state.Cut(left.ID, "m9"), fence.CutReport{Case: left.ID}))
	// Its leadership moved: there is no proof of what is now.
	c.leads("m1")
	c.phase("")
	if leader, _ := c.leader(); leader != "m1" {
		t.Errorf("%q leads", leader)
	}
}

func TestAJudgeThatLeadsNoMoreWritesNothing(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	won, err := c.store.Client.Put(t.Context(), state.ElectionRoot+"1", "s1")
	if err != nil {
		t.Fatal(err)
	}
	c.judge(func(cfg *Config) { cfg.Leading = state.Held(state.ElectionRoot+"1", won.Header.Revision) })
	c.knows("a", true)
	if _, err := c.store.Client.Delete(t.Context(), state.ElectionRoot+"1"); err != nil {
		t.Fatal(err)
	}
	c.host("a", silent)
	untilSuspected(c, "a")
	testkit.Always(t, 2*detection, func() error {
		live, err := state.Load[struct{ Alive bool }](c.cache, state.Live("a"))
		leader, _ := c.leader()
		if _, _, open := c.cache.Raw(state.Fence(database, "m1")); err != nil || !live.Value.Alive || leader != "m1" || open {
			return fmt.Errorf("alive %v, %w; %q leads; a case is open: %v", live.Value.Alive, err, leader, open)
		}
		return nil
	})
}
