package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

func (c *court) cut(host, member, of string) {
	c.Helper()
	c.put(state.Put(state.Cut(of, member), fence.CutReport{Case: of, Host: host, Member: member, How: "kernel", At: time.Now()}))
}

// With any 1 of 2, one cut is enough if the other standby is the one that is promoted;
// with all cuts any of them may be.
func TestQuorumCounts(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	f := &quorum{trial: tr}
	c.cut("c", "m3", "another-case")
	c.cut("d", "m4", tr.c.ID) // no synchronous standby
	if cut := tr.cuts(); len(cut) != 0 {
		t.Errorf("cuts %q, want none", cut)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*restOfCuts)
	defer cancel()
	if proof, err := f.Fence(ctx, tr.c.Leadership, "a"); err == nil {
		t.Errorf("proved without a cut: %+v", proof)
	}
	c.cut("b", "m2", tr.c.ID)
	proof, err := f.Fence(t.Context(), tr.c.Leadership, "a")
	if err != nil || proof.Method != "quorum" || !strings.Contains(proof.Text, "whoever of m3 is promoted") {
		t.Errorf("with one cut: %+v, %v", proof, err)
	}
	c.cut("c", "m3", tr.c.ID)
	proof, err = f.Fence(t.Context(), tr.c.Leadership, "a")
	if err != nil || proof.Method != "quorum" || proof.At.IsZero() || !strings.Contains(proof.Text, "2 of the 2") || strings.Contains(proof.Text, "whoever") {
		t.Errorf("%+v, %v", proof, err)
	}
}

// The hosts of both standbys are there, and their agents cut nothing: nobody is promoted,
// however old the lease is, and the case says who would help. When one of them cuts, the
// other one may be promoted.
func TestNoProofWithoutACount(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	for _, h := range []string{"b", "c"} {
		c.host(h, func(h *fakeHost) { h.cuts = false })
	}
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	c.phase(fence.Cutting)
	testkit.Eventually(t, 10*time.Second, func() error {
		of, err := state.Load[fence.Case](c.cache, state.Fence(database, "m1"))
		if err == nil && !strings.Contains(of.Value.Waiting, "m2 on b, m3 on c") {
			err = fmt.Errorf("it says %q", of.Value.Waiting)
		}
		return err
	})
	testkit.Eventually(t, 30*time.Second, func() error {
		answer, err := c.store.Client.TimeToLive(t.Context(), c.lease)
		if err == nil && answer.GrantedTTL-answer.TTL <= patroni.SelfDemotion {
			err = errors.New("the lease is young")
		}
		return err
	})
	if leader, _ := c.leader(); leader != "m1" {
		t.Fatalf("%q leads: the age of the lease was taken for a proof", leader)
	}
	c.host("b", func(h *fakeHost) { h.cuts = true })
	of := c.phase(fence.Revoked)
	if diff := cmp.Diff([]string{"m3"}, of.Candidates); diff != "" || of.Waiting != "" {
		t.Errorf("candidates %s; it still says %q", diff, of.Waiting)
	}
}

// With one standby its promotion is the fence: nobody waits for a host that cannot cut.
func TestOneStandbyNeedsNoCut(t *testing.T) {
	t.Parallel()
	c := newCourt(t, `{"leader":"m1","sync_standby":"m2"}`)
	c.host("b", func(h *fakeHost) { h.cuts = false })
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	of := c.phase(fence.Revoked)
	if of.Proof.Method != "quorum" || !slices.Equal(of.Candidates, []string{"m2"}) {
		t.Errorf("%+v", of)
	}
}

// The host that an operator swore to be off came back while no control plane ran, and told
// of its member, before it was lost again: that takes a new word.
func TestAnOldWordIsNoProof(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	report := state.Put(state.Report("a", database+".m1"), member.Report{ID: database + ".m1", Ready: true})
	word := state.Put(state.Sworn("a"), fence.Sworn{Host: "a", By: "ada", At: time.Now()})
	c.put(report)
	c.put(word)
	c.put(report)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if proof, err := (&sworn{trial: tr}).Fence(ctx, tr.c.Leadership, "a"); err == nil {
		t.Errorf("a word that the host outlived is a proof: %+v", proof)
	}
	c.put(word)
	if proof, err := (&sworn{trial: tr}).Fence(t.Context(), tr.c.Leadership, "a"); err != nil || proof.Method != "operator" {
		t.Errorf("%+v, %v", proof, err)
	}
}

// An operator's word is a proof, until the host is heard.
func TestAnOperatorsWord(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	for _, h := range []string{"b", "c"} {
		c.host(h, func(h *fakeHost) { h.cuts = false })
	}
	c.judge(nil)
	c.knows("a", true)
	c.host("a", silent)
	c.phase(fence.Cutting)
	c.put(state.Put(state.Sworn("a"), fence.Sworn{Host: "a", By: "ada", At: time.Now()}))
	if of := c.phase(fence.Revoked); of.Proof.Method != "operator" || !of.Proof.Off() || !strings.Contains(of.Proof.Text, "ada swore") || of.Candidates != nil {
		t.Errorf("%+v", of)
	}
	c.host("a", heard)
	testkit.Eventually(t, 10*time.Second, func() error {
		if _, _, sworn := c.cache.Raw(state.Sworn("a")); sworn {
			return errors.New("the word on a host that is heard stands")
		}
		return nil
	})
}

// A lease ended by itself, and a promotion waits at its gate: the standbys are cut off for
// it, without a witness and although the old primary's host is heard.
func TestAPleaOpensACase(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.host("b", func(h *fakeHost) { h.cuts = false })
	c.judge(nil)
	c.knows("a", true)
	c.leads("m2")
	old := patroni.Sync{Leader: "m1", Standbys: []string{"m2", "m3"}, Quorum: 1}
	plea := fence.Plea{Database: database, Member: "m2", Old: old, Why: "m3 is not cut off"}
	c.put(state.Put(state.Plea(database), plea))
	of := c.phase(fence.Revoked) // whoever waits needs no cut of its own
	if of.Proof.Method != "gate" || of.Host != "a" || of.Proof.Off() || !strings.Contains(of.Evidence[0], "m2 waits") {
		t.Errorf("%+v", of)
	}
	if _, _, told := c.cache.Raw(state.Cut(of.ID, "m3")); !told {
		t.Error("m3 is not cut off")
	}
	if all := c.incidents(); len(all) != 1 || !strings.Contains(all[0].Cause, "ended by itself") {
		t.Errorf("incidents %+v", all)
	}
	// The old primary leads again: the plea has nothing to say any more.
	c.leads("m1")
	testkit.Eventually(t, 10*time.Second, func() error {
		if _, _, exists := c.cache.Raw(state.Plea(database)); exists {
			return errors.New("the plea is still there")
		}
		return nil
	})
	c.phase("")
}

// Also where all standbys are cut off at once, it is told that the lease ended by itself.
func TestAPleaThatAllStandbysHear(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.judge(nil)
	c.knows("a", true)
	c.leads("m2")
	old := patroni.Sync{Leader: "m1", Standbys: []string{"m2", "m3"}, Quorum: 1}
	c.put(state.Put(state.Plea(database), fence.Plea{Database: database, Member: "m2", Old: old, Why: "m3 is not cut off"}))
	if of := c.phase(fence.Revoked); of.Proof.Method != "gate" {
		t.Errorf("%+v", of)
	}
}

// Who was let through is remembered until it, or the primary before it, serves.
func TestWhoWasLetThroughIsRemembered(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.judge(nil)
	c.knows("a", true)
	c.put(state.Put(state.Passed(database), fence.Passed{Database: database, Member: "m2", Old: "m1"}))
	c.leads("m2")
	c.put(state.Put(state.Report("b", database+".m2"), member.Report{ID: database + ".m2", Host: "b", Ready: true}))
	remembered := func(why string) {
		t.Helper()
		for range 3 {
			c.knows("b", true) // some rounds of the judge
			pauseFor(t.Context(), look)
		}
		if _, _, exists := c.cache.Raw(state.Passed(database)); !exists {
			t.Error("it is forgotten " + why)
		}
	}
	remembered("before it has said that it is the primary")
	c.raw(patroni.SyncKey(database), `{"leader":"m2","sync_standby":"m3","quorum":0}`)
	remembered("before it is written down that it serves")
	// A case of the time before, which is taken up by the judge, stays until its host is heard.
	c.put(state.Put(state.Fence(database, "m2"), fence.Case{
		ID: "1", Phase: fence.Revoked, Host: "elsewhere", Leadership: fence.Leadership{Database: database, Leader: "m2", LeaderRevision: 1 << 40},
	}))
	c.put(state.Put(state.Lead(database), member.Lead{Member: "m2", Host: "b"}))
	remembered("while a case is open that is about the time before")
	c.put(state.Put(state.Report("elsewhere", database+".m2"), member.Report{ID: database + ".m2", Host: "elsewhere"}))
	c.host("elsewhere", func(h *fakeHost) { h.beats = true })
	testkit.Eventually(t, 10*time.Second, func() error {
		if _, _, exists := c.cache.Raw(state.Passed(database)); exists {
			return errors.New("it is not forgotten")
		}
		return nil
	})
}

// … and of the primary before only what it wrote since counts, as one that leads: in quorum mode the
// state that it left is written again, unchanged, when another one is let through. In priority mode
// Patroni writes a state without standbys for it before its gate.
func TestThePrimaryBeforeHasToSayThatItLeadsOn(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.put(state.Put(state.Lead(database), member.Lead{Member: "m1", Host: "a"}))
	c.put(state.Put(state.Report("a", database+".m1"), member.Report{ID: database + ".m1", Host: "a", Ready: true}))
	c.put(state.Put(state.Passed(database), fence.Passed{Database: database, Member: "m2", Old: "m1"}))
	c.judge(nil)
	remembered := func(why string) {
		t.Helper()
		for range 3 {
			c.knows("a", true) // some rounds of the judge
			pauseFor(t.Context(), look)
		}
		if _, _, exists := c.cache.Raw(state.Passed(database)); !exists {
			t.Error("it is forgotten that another one was let through, " + why)
		}
	}
	remembered("before it has written anything")
	c.raw(patroni.SyncKey(database), `{"leader":"m1","sync_standby":null}`)
	remembered("by what Patroni writes before a gate")
	c.raw(patroni.SyncKey(database), quorum3)
	testkit.Eventually(t, 10*time.Second, func() error {
		if _, _, exists := c.cache.Raw(state.Passed(database)); exists {
			return errors.New("it is not forgotten")
		}
		return nil
	})
}

// A standby that came to be in sync after the case was opened is cut off when a gate asks
// for it: otherwise that gate would wait until the old primary's host is back.
func TestAPleaForAStandbyThatTheCaseDoesNotName(t *testing.T) {
	t.Parallel()
	c := newCourt(t, `{"leader":"m1","sync_standby":"m2","quorum":0}`)
	c.judge(nil)
	c.knows("a", true)
	c.host("a", func(h *fakeHost) { h.beats = false })
	of := c.phase(fence.Revoked)
	c.leads("m2")
	old := patroni.Sync{Leader: "m1", Standbys: []string{"m2", "m3"}, Quorum: 1}
	c.put(state.Put(state.Plea(database), fence.Plea{Database: database, Member: "m2", Old: old, Why: "m3 is not cut off", Missing: []string{"m3"}}))
	testkit.Eventually(t, 10*time.Second, func() error {
		now := c.phase(fence.Revoked)
		if now.ID != of.ID || !slices.Contains(now.Leadership.Sync.Standbys, "m3") {
			return fmt.Errorf("m3 is not asked to cut itself off: %+v", now)
		}
		return nil
	})
	// It is let through, and the cuts end as they always do.
	c.put(state.Delete(state.Plea(database)))
	c.host("a", func(h *fakeHost) { h.beats = true })
	c.report(false, false)
	c.phase("")
}

func TestQuorumProvesNothingOfAPrimaryThatNeedsNobody(t *testing.T) {
	t.Parallel()
	c := newCourt(t, `{"leader":"m1","sync_standby":""}`)
	tr := c.trial()
	c.cut("b", "m2", tr.c.ID)
	if _, err := (&quorum{trial: tr}).Fence(t.Context(), tr.c.Leadership, "a"); !errors.Is(err, fence.ErrRefused) {
		t.Errorf("%v, want a refusal", err)
	}
}

// program writes a program of the operator's. No other test may start a process
// meanwhile: it would have the file open for writing, too, and until it has become
// another program nobody could run this one.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stonith")
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStonithTakesTheExitCodeForProof(t *testing.T) {
	t.Parallel()
	l := fence.Leadership{Database: database, Leader: "m1"}
	seen := filepath.Join(t.TempDir(), "seen")
	f := &stonith{patience: patience.For(5 * time.Second), command: program(t, `echo "$1 $HOWDAH_HOST $HOWDAH_DATABASE $HOWDAH_MEMBER" > `+seen)}
	proof, err := f.Fence(t.Context(), l, "a")
	if err != nil || proof.Method != "stonith" || !strings.Contains(proof.Text, "a is off") {
		t.Errorf("%+v, %v", proof, err)
	}
	if text, err := os.ReadFile(seen); err != nil || string(text) != "a a db-1 m1\n" {
		t.Errorf("the command saw %q, %v", text, err)
	}
	for name, c := range map[string]struct {
		command string
		most    time.Duration
	}{
		"it fails":        {program(t, "echo no power switch >&2; exit 3"), patience.For(5 * time.Second)},
		"it does not end": {program(t, "sleep 60 & sleep 60"), time.Second},
		"there is none":   {"/nowhere/stonith", time.Second},
	} {
		began := time.Now()
		_, err := (&stonith{command: c.command, patience: c.most}).Fence(t.Context(), l, "a")
		if !errors.Is(err, fence.ErrRefused) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		if name == "it fails" && !strings.Contains(err.Error(), "no power switch") {
			t.Errorf("the refusal hides what the command said: %v", err)
		}
		if took := time.Since(began); took > patience.For(5*time.Second) {
			t.Errorf("%s: it took %s", name, took)
		}
	}
}

func TestStonithProvesWhereNobodyCuts(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	for _, h := range []string{"b", "c"} {
		c.host(h, func(h *fakeHost) { h.cuts = false })
	}
	c.judge(func(cfg *Config) { cfg.Stonith = program(t, "exit 0") })
	c.knows("a", true)
	c.host("a", silent)
	c.phase(fence.Revoked)
	if all := c.incidents(); len(all) != 1 || all[0].Proof.Method != "stonith" {
		t.Errorf("incidents %+v", all)
	}
}

// untilSuspected waits until a host is silent enough.
func untilSuspected(c *court, host string) {
	c.Helper()
	testkit.Eventually(c, 5*time.Second, func() error {
		if s := c.pulse.Silence(host); s < detection {
			return fmt.Errorf("%s is silent for %s", host, s)
		}
		return nil
	})
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	for _, v := range []struct {
		name      string
		witnesses []fence.Witness
		silent    string
		want      error
		texts     int
	}{
		{name: "nobody spoke", want: errNobody},
		{name: "one did not speak", witnesses: []fence.Witness{{Host: "b"}}, want: errNobody},
		{name: "one that is silent itself did not speak", witnesses: []fence.Witness{{Host: "b"}}, silent: "c", texts: 1},
		{name: "both reach nothing", witnesses: []fence.Witness{{Host: "b"}, {Host: "c"}}, texts: 2},
		{name: "one reaches both", witnesses: []fence.Witness{{Host: "b"}, {Host: "c", Patroni: true, Postgres: true}}, want: errAnswers},
		{name: "one reaches Patroni only", witnesses: []fence.Witness{{Host: "b"}, {Host: "c", Patroni: true}}, want: errHalf, texts: 2},
		{name: "one reaches PostgreSQL only", witnesses: []fence.Witness{{Host: "b", Postgres: true}, {Host: "c"}}, want: errHalf, texts: 2},
		{name: "of another case", witnesses: []fence.Witness{{Host: "b", Case: "old"}, {Host: "c", Case: "old"}}, want: errNobody},
		{name: "of somebody without a standby", witnesses: []fence.Witness{{Host: "d"}}, want: errNobody},
	} {
		t.Run(v.name, func(t *testing.T) {
			for _, h := range []string{"b", "c"} {
				c.host(h, heard)
				c.pulse.Beat(h, "")
			}
			if v.silent != "" {
				c.host(v.silent, silent)
				untilSuspected(c, v.silent)
			}
			c.put(state.DeletePrefix(state.WitnessRoot))
			for _, w := range v.witnesses {
				if w.Case == "" {
					w.Case = tr.c.ID
				}
				c.put(state.Put(state.Witness(w.Case, w.Host), w))
			}
			for _, h := range []string{"b", "c"} {
				if h != v.silent {
					c.pulse.Beat(h, "") // just now, however busy the machine is
				}
			}
			texts, err := tr.evidence()
			if !errors.Is(err, v.want) || len(texts) != v.texts {
				t.Errorf("%q, %v; want %d texts, %v", texts, err, v.texts, v.want)
			}
		})
	}
}
