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

	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

const (
	// restOfCuts is how long the judge waits for the remaining cuts once there are enough. With all
	// of them any standby may be promoted, and none waits for an answer of the lost host.
	restOfCuts = 500 * time.Millisecond
	// stonithTimeout is how long the operator's command may take.
	stonithTimeout = 30 * time.Second
	// explainAfter is how long a proof may take before the case says what is missing.
	explainAfter = 3 * time.Second
)

func (t *trial) fencers() []fence.Fencer {
	all := []fence.Fencer{&quorum{trial: t}, &sworn{trial: t}}
	if t.judge.Stonith != "" {
		all = append(all, &stonith{command: t.judge.Stonith, patience: stonithTimeout})
	}
	return all
}

// prove asks all fencers at once, and the first proof counts. It waits while the primary leads and
// its host is silent: time alone is no proof. It then tells the other fencers to end, except for
// the operator's command. That one ends by itself, as a host that is half switched off helps
// nobody.
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
	for began := time.Now(); len(refused) < len(fencers); {
		select {
		case v := <-verdicts:
			if v.err == nil {
				return v.proof, nil
			}
			refused = append(refused, v.err)
		case <-time.After(4 * pace):
			if err := t.overtaken(); err != nil {
				return fence.Proof{}, err
			}
			if time.Since(began) > explainAfter {
				t.explain(ctx)
			}
		}
	}
	return fence.Proof{}, errors.Join(refused...)
}

// explain writes into the case what is missing and who would help, if that changed.
func (t *trial) explain(ctx context.Context) {
	l := t.c.Leadership
	var open []string
	for _, name := range fence.Unfenced(l.Sync, "", t.cutMembers()) {
		open = append(open, name+" on "+t.hostOf(name))
	}
	text := "it is not certain that " + l.Leader + " acknowledges nothing: of its standbys have not cut themselves off " + strings.Join(open, ", ")
	if text == t.c.Waiting {
		return
	}
	t.judge.Log.Warn("no proof", "case", t.c.ID, "reason", text)
	old := t.c.Waiting
	t.c.Waiting = text
	if t.keep(ctx) != nil {
		t.c.Waiting = old // said again
	}
}

func (t *trial) hostOf(name string) string {
	for _, m := range t.layout.Members {
		if m.Name == name {
			return m.Host
		}
	}
	return "no host"
}

// quorum proves by the standbys' own cuts. A primary under synchronous replication acknowledges
// nothing without its standbys (docs/design/availability.md, Fences).
type quorum struct{ trial *trial }

func (q *quorum) Name() string { return "quorum" }

// Fence returns a proof once one of the standbys can be promoted, after a moment for the other
// cuts.
func (q *quorum) Fence(ctx context.Context, l fence.Leadership, _ string) (fence.Proof, error) {
	if len(l.Sync.Standbys) == 0 {
		return fence.Proof{}, fmt.Errorf("it needs no standby: %w", fence.ErrRefused)
	}
	var enough time.Time
	for {
		cut := q.trial.cutMembers()
		if may := fence.Candidates(l.Sync, cut); len(may) > 0 {
			if enough.IsZero() {
				enough = time.Now()
			}
			if len(cut) == len(l.Sync.Standbys) || time.Since(enough) > restOfCuts {
				return fence.Proof{Method: q.Name(), Text: q.text(l, may), At: time.Now().UTC()}, nil
			}
		}
		if !pauseFor(ctx, pace) {
			return fence.Proof{}, ctx.Err()
		}
	}
}

func (q *quorum) text(l fence.Leadership, may []string) string {
	cut := q.trial.cuts()
	text := fmt.Sprintf("%d of the %d synchronous standbys are cut off from it: %s", len(cut), len(l.Sync.Standbys), strings.Join(cut, ", "))
	if len(cut) < len(l.Sync.Standbys) {
		text += fmt.Sprintf("; whoever of %s is promoted leaves it, and it needs %d to acknowledge anything",
			strings.Join(may, ", "), len(l.Sync.Standbys)-l.Sync.Quorum)
	}
	return text
}

// cuts are the synchronous standbys that reported theirs, with how; cutMembers their
// names.
func (t *trial) cuts() (texts []string) {
	for _, r := range t.cutReports() {
		texts = append(texts, fmt.Sprintf("%s on %s (%s)", r.Member, r.Host, r.How))
	}
	return texts
}

func (t *trial) cutMembers() (names []string) {
	for _, r := range t.cutReports() {
		names = append(names, r.Member)
	}
	return names
}

func (t *trial) cutReports() (cut []fence.CutReport) {
	for _, r := range state.LoadAll[fence.CutReport](t.judge.Cache, state.CutPrefix(t.c.ID)) {
		if slices.Contains(t.c.Leadership.Sync.Standbys, r.Value.Member) {
			cut = append(cut, r.Value)
		}
	}
	return cut
}

// sworn proves by an operator's word that the host is off.
type sworn struct{ trial *trial }

func (s *sworn) Name() string { return "operator" }

func (s *sworn) Fence(ctx context.Context, _ fence.Leadership, host string) (fence.Proof, error) {
	for {
		if word, err := state.Load[fence.Sworn](s.trial.judge.Cache, state.Sworn(host)); err == nil && !s.trial.toldSince(word.Revision) {
			text := fmt.Sprintf("%s swore at %s that %s is off", word.Value.By, word.Value.At.Format(time.TimeOnly), host)
			return fence.Proof{Method: s.Name(), Text: text, At: time.Now().UTC()}, nil
		}
		if !pauseFor(ctx, 10*pace) {
			return fence.Proof{}, ctx.Err()
		}
	}
}

// toldSince reports whether the primary's host has reported the primary after a revision. If no
// control plane ran when that host came back, nobody has removed the operator's word.
func (t *trial) toldSince(revision int64) bool {
	id := member.ID(t.c.Leadership.Database, t.c.Leadership.Leader)
	report, err := state.Load[member.Report](t.judge.Cache, state.Report(t.c.Host, id))
	return err == nil && report.Revision > revision
}

// stonith proves by the operator's command, which kills the host.
type stonith struct {
	command  string
	patience time.Duration
}

func (s *stonith) Name() string { return "stonith" }

// Fence runs the command with the host's name as its argument. Exit code 0 is the operator's word
// that the host does not run any more. The command goes on after ctx ends, until its timeout; then
// everything that it started is killed.
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
