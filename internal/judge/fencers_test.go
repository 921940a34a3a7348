package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/patroni"
	"howdah/internal/fence"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

func (c *court) cut(host, member, of string) {
	c.Helper()
	c.put(state.Put(state.Cut(of, member), fence.CutReport{Case: of, Host: host, Member: member, How: "kernel", At: time.Now()}))
}

func TestQuorumCounts(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	f := &quorum{trial: tr}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	c.cut("b", "m2", tr.c.ID)
	c.cut("c", "m3", "another-case")
	c.cut("d", "m4", tr.c.ID) // no synchronous standby
	if cut := f.cuts(tr.c.Leadership); len(cut) != 1 {
		t.Errorf("cuts %q, want that of m2", cut)
	}
	if proof, err := f.Fence(ctx, tr.c.Leadership, "a"); err == nil {
		t.Errorf("proved by one of two cuts: %+v", proof)
	}
	c.cut("c", "m3", tr.c.ID)
	proof, err := f.Fence(t.Context(), tr.c.Leadership, "a")
	if err != nil || proof.Method != "quorum" || proof.At.IsZero() || !strings.Contains(proof.Text, "2 of the 2") {
		t.Errorf("%+v, %v", proof, err)
	}
}

func TestQuorumRefusesInTime(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	began := time.Now()
	_, err := (&quorum{trial: tr}).Fence(t.Context(), tr.c.Leadership, "a")
	if !errors.Is(err, fence.ErrRefused) || !strings.Contains(err.Error(), "0 of 2 needed") {
		t.Errorf("%v, want a refusal", err)
	}
	if took := time.Since(began); took > cutTimeout+patience.For(time.Second) {
		t.Errorf("it took %s", took)
	}
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

func TestLeaseProvesByAge(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	c.host("a", silent)
	tr := c.trial()
	untilSuspected(c, "a")
	proof, err := (&lease{trial: tr}).Fence(t.Context(), tr.c.Leadership, "a")
	if err != nil || proof.Method != "lease" {
		t.Fatalf("%+v, %v", proof, err)
	}
	answer, err := c.store.Client.TimeToLive(t.Context(), c.lease)
	if err != nil || answer.GrantedTTL-answer.TTL < patroni.SelfDemotion {
		t.Errorf("proved when the lease was %d s old: %v", answer.GrantedTTL-answer.TTL, err)
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

func TestLeaseRefuses(t *testing.T) {
	t.Parallel()
	c := newCourt(t, quorum3)
	tr := c.trial()
	f := &lease{trial: tr}
	if _, err := f.Fence(t.Context(), tr.c.Leadership, "a"); !errors.Is(err, fence.ErrRefused) || !errors.Is(err, errAlive) {
		t.Errorf("of a host that is heard: %v", err)
	}
	c.host("a", silent)
	untilSuspected(c, "a")
	for _, h := range []string{"b", "c"} {
		c.put(state.Put(state.Witness(tr.c.ID, h), fence.Witness{Case: tr.c.ID, Host: h, Postgres: h == "c"}))
	}
	if _, err := f.Fence(t.Context(), tr.c.Leadership, "a"); !errors.Is(err, fence.ErrRefused) || !errors.Is(err, errHalf) {
		t.Errorf("of a PostgreSQL without a Patroni: %v", err)
	}
	c.put(state.Put(state.Witness(tr.c.ID, "c"), fence.Witness{Case: tr.c.ID, Host: "c"}))
	if _, err := c.store.Client.Revoke(t.Context(), c.lease); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fence(t.Context(), tr.c.Leadership, "a"); !errors.Is(err, fence.ErrMoved) {
		t.Errorf("of a lease that has ended: %v", err)
	}
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
				c.pulse.Beat(h)
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
					c.pulse.Beat(h) // just now, however busy the machine is
				}
			}
			texts, err := tr.evidence()
			if !errors.Is(err, v.want) || len(texts) != v.texts {
				t.Errorf("%q, %v; want %d texts, %v", texts, err, v.texts, v.want)
			}
		})
	}
}
