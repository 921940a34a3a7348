package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"howdah/internal/engine/patroni"
	"howdah/internal/fence"
	"howdah/internal/state"
)

const (
	// cutTimeout is how long the standbys' hosts may take to cut themselves off.
	cutTimeout = 3 * time.Second
	// stonithTimeout is how long the operator's command may take.
	stonithTimeout = 30 * time.Second
)

func (t *trial) fencers() []fence.Fencer {
	all := []fence.Fencer{&quorum{trial: t}, &lease{trial: t}}
	if t.judge.Stonith != "" {
		all = append(all, &stonith{command: t.judge.Stonith, patience: stonithTimeout})
	}
	return all
}

// prove asks all fencers at once: the first proof counts. It refuses when all do.
// The others are told to end, except for the operator's command, which is left to
// end by itself: a host half switched off helps nobody.
func (t *trial) prove(ctx context.Context) (fence.Proof, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type verdict struct {
		proof fence.Proof
		err   error
	}
	fencers := t.fencers()
	verdicts := make(chan verdict, len(fencers))
	for _, f := range fencers {
		go func() {
			proof, err := f.Fence(ctx, t.c.Leadership, t.c.Host)
			if err != nil && ctx.Err() == nil {
				t.judge.Log.Warn("fencer refused", "case", t.c.ID, "method", f.Name(), "reason", err)
			}
			verdicts <- verdict{proof, err}
		}()
	}
	var refused []error
	for range fencers {
		v := <-verdicts
		if v.err == nil {
			return v.proof, nil
		}
		refused = append(refused, v.err)
	}
	return fence.Proof{}, errors.Join(refused...)
}

// quorum proves by the standbys' own cuts: a primary under synchronous
// replication acknowledges nothing without them (spec/ha.md A4.2).
type quorum struct{ trial *trial }

func (q *quorum) Name() string { return "quorum" }

func (q *quorum) Fence(ctx context.Context, l fence.Leadership, _ string) (fence.Proof, error) {
	needed := l.Sync.CutsNeeded()
	deadline := time.Now().Add(cutTimeout)
	for {
		cut := q.cuts(l)
		if needed > 0 && len(cut) >= needed {
			text := fmt.Sprintf("%d of the %d synchronous standbys are cut off from it (%d needed): %s",
				len(cut), len(l.Sync.Standbys), needed, strings.Join(cut, ", "))
			return fence.Proof{Method: q.Name(), Text: text, At: time.Now().UTC()}, nil
		}
		if time.Now().After(deadline) {
			return fence.Proof{}, fmt.Errorf("%d of %d needed cuts were reported: %w", len(cut), needed, fence.ErrRefused)
		}
		if !pauseFor(ctx, pace) {
			return fence.Proof{}, ctx.Err()
		}
	}
}

// cuts are the synchronous standbys that reported theirs, with how.
func (q *quorum) cuts(l fence.Leadership) []string {
	var cut []string
	for _, r := range state.LoadAll[fence.CutReport](q.trial.judge.Cache, state.CutPrefix(q.trial.c.ID)) {
		if slices.Contains(l.Sync.Standbys, r.Value.Member) {
			cut = append(cut, fmt.Sprintf("%s on %s (%s)", r.Value.Member, r.Value.Host, r.Value.How))
		}
	}
	return cut
}

// stonith asks the operator's command to kill the host for certain.
type stonith struct {
	command  string
	patience time.Duration
}

func (s *stonith) Name() string { return "stonith" }

// Fence runs the command with the host's name as its argument: exit code 0 is
// the operator's word that the host does not run any more. The command goes on when
// ctx ends, for as long as its patience; then everything that it started is killed.
func (s *stonith) Fence(ctx context.Context, l fence.Leadership, host string) (fence.Proof, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.command, host)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // what has left the group may keep its output open
	cmd.Env = append(os.Environ(), "HOWDAH_HOST="+host, "HOWDAH_DATABASE="+l.Database, "HOWDAH_MEMBER="+l.Leader)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fence.Proof{}, fmt.Errorf("%s %s: %w: %.200s: %w", s.command, host, err, out, fence.ErrRefused)
	}
	return fence.Proof{Method: s.Name(), Text: s.command + " said that " + host + " is off", At: time.Now().UTC()}, nil
}

// lease proves by time: Patroni gives up being primary when it could not renew
// its lease for a known time (spec/ha.md A4.1). It is the last resort, and far
// quicker than waiting for the lease to end.
type lease struct{ trial *trial }

func (f *lease) Name() string { return "lease" }

func (f *lease) Fence(ctx context.Context, l fence.Leadership, _ string) (fence.Proof, error) {
	deadline := time.Now().Add(patroni.TTL * time.Second)
	for time.Now().Before(deadline) {
		answer, err := f.trial.judge.Store.Client.TimeToLive(ctx, l.Lease)
		if err != nil {
			return fence.Proof{}, fmt.Errorf("ask for the age of the lease: %w: %w", err, fence.ErrRefused)
		}
		if answer.TTL < 0 {
			return fence.Proof{}, fmt.Errorf("the lease ended by itself: %w", fence.ErrMoved)
		}
		if err := f.doubt(); err != nil {
			return fence.Proof{}, fmt.Errorf("%w: %w", err, fence.ErrRefused)
		}
		if age := answer.GrantedTTL - answer.TTL; age >= patroni.SelfDemotion {
			text := fmt.Sprintf("its lease was not renewed for %d s, after which Patroni has stepped down", age)
			return fence.Proof{Method: f.Name(), Text: text, At: time.Now().UTC()}, nil
		}
		if !pauseFor(ctx, 100*time.Millisecond) {
			return fence.Proof{}, ctx.Err()
		}
	}
	return fence.Proof{}, fmt.Errorf("the lease is being renewed: %w", fence.ErrRefused)
}

// doubt is what stands against a proof by time: the host is heard, or somebody still
// reaches the primary. A PostgreSQL without a Patroni does not step down.
func (f *lease) doubt() error {
	if f.trial.judge.Pulse.Silence(f.trial.c.Host) < f.trial.judge.suspicion() {
		return errAlive
	}
	if _, verdict := f.trial.evidence(); errors.Is(verdict, errHalf) || errors.Is(verdict, errAnswers) {
		return verdict
	}
	return nil
}
