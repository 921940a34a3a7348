package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
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
	for _, r := range state.LoadAll[fence.CutReport](q.trial.judge.Cache, state.CutRoot+l.Database+"/") {
		if r.Value.Case == q.trial.c.ID && slices.Contains(l.Sync.Standbys, r.Value.Member) {
			cut = append(cut, fmt.Sprintf("%s on %s (%s)", r.Value.Member, r.Value.Host, r.Value.How))
		}
	}
	return cut
}

// stonith asks the operator's command to kill the host for certain.
type stonith struct{ command string }

func (s *stonith) Name() string { return "stonith" }

// Fence runs the command with the host's name as its argument: exit code 0 is
// the operator's word that the host does not run any more.
func (s *stonith) Fence(ctx context.Context, l fence.Leadership, host string) (fence.Proof, error) {
	ctx, cancel := context.WithTimeout(ctx, stonithTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.command, host)
	cmd.WaitDelay = time.Second // what it leaves running may keep its output open
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
	if _, verdict := f.trial.evidence(); errors.Is(verdict, errHeadless) || errors.Is(verdict, errAnswers) {
		return verdict
	}
	return nil
}
