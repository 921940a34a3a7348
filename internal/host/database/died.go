package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/failover/fence"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/system/owner"
	"howdah/internal/system/plainfile"
)

// postmasterDied decides what the end of a PostgreSQL means. An orderly stop is
// Patroni's doing. The crash of a primary that a standby can replace is not
// waited out: fence, prove, revoke, and start again as a replica. Any other is started
// again by its Patroni.
func (r *runner) postmasterDied(ctx context.Context, exit proc.Exit) {
	if r.Want.Want != member.Running || r.fencing.Load() || r.Doomed() {
		return
	}
	control, err := postgres.ReadControl(r.dataDir)
	if err == nil && control.State.Clean() {
		return
	}
	r.Log.Warn("PostgreSQL died", "exit", exit.String())
	if !r.guard.Replace(ctx, "PostgreSQL of the primary died: "+exit.String(), exit.At) {
		go dial.Wake(ctx, r.host.Agent, r.probe.Target()) // which starts it again
	}
}

// crashLoop is how many starts in a row have to end soon to be a problem.
const crashLoop = 3

// settleAfter is how long a Patroni that ended again and again must run to count
// as mended.
const settleAfter = 5 * time.Second

// patroniDied is followed by a start, at once or after a pause, in converge; see
// orphan for the PostgreSQL that it may have left.
func (r *runner) patroniDied(exit proc.Exit) {
	if r.Want.Want != member.Running {
		return
	}
	r.Log.Warn("Patroni died", "exit", exit.String())
	if r.retry.Failures >= crashLoop && time.Since(r.started) < settleAfter {
		r.crashing = true
		r.Problem = member.StartFails
		r.Detail = strings.TrimSpace(fmt.Sprintf("Patroni ended soon, %d times: %s %s",
			r.retry.Failures, exit, lastLine(r.User(), filepath.Join(r.Dir(), patroni.LogDir, patroniOutput))))
	}
}

// settle takes note that a Patroni which ended again and again stays.
func (r *runner) settle() {
	if !r.crashing || time.Since(r.started) < settleAfter {
		return
	}
	r.crashing = false
	if r.Problem == member.StartFails {
		r.Problem, r.Detail = member.None, ""
	}
}

// lastLine is the end of a program's output, where it says why it ended; "" if it
// cannot be read.
func lastLine(user *owner.User, path string) string {
	var text []byte
	err := user.Do(func() (err error) {
		text, err = plainfile.Tail(path, 500)
		return err
	})
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// orphan deals with a PostgreSQL that runs without Patroni. Nobody renews the
// lease of such a primary, and another one may be elected while it still serves;
// so it goes, at once where a standby can replace it. Where nobody could, a new
// Patroni may take it over untouched, if it comes soon.
func (r *runner) orphan(ctx context.Context) {
	switch {
	case !r.postmaster.Alive():
		r.orphaned, r.hung = time.Time{}, ""
	case time.Since(r.rekeyed) < rekeyGrace:
		// The next Patroni is about to be started.
	case r.orphaned.IsZero():
		r.orphaned = time.Now()
		if !r.guard.Replace(ctx, explainOrphan(r.hung), r.orphaned) {
			r.recordHang(ctx)
		}
		r.hung = ""
	case r.guard.Owes():
		// While etcd takes no writes nobody is elected in its place.
	case time.Since(r.orphaned) > orphanGrace:
		r.KillAll(ctx, "PostgreSQL runs without Patroni")
	}
}

// giveIn ends the own primary, which was replaced while this host was silent.
func (a *Host) giveIn(ctx context.Context, c fence.Case) {
	id := member.ID(c.Leadership.Database, c.Leadership.Leader)
	r := a.runner(ctx, id)
	r.Do(func(ctx context.Context) {
		l, err := r.guard.Leadership(ctx)
		switch {
		case err == nil && l.Leader == c.Leadership.Leader:
			return // it was elected again, or leads still
		case c.Phase != fence.Revoked && (err != nil || l.Leader == ""):
			return // nobody else leads yet: its Patroni may
		}
		r.Log.Warn("this primary was replaced while the host was silent", "case", c.ID)
		if proof, ok := r.Kill(ctx, "primary was replaced"); ok {
			if err == nil {
				r.guard.TellDeath(ctx, proof, l)
			}
			r.guard.TellWALEnd(ctx, c)
		}
		r.retry = pace.Backoff{}
	})
}

// checkHang starts a Patroni again that has neither a PostgreSQL nor a child that
// is making one (docs/design/availability.md). No data are at risk: nothing runs on them.
func (r *runner) checkHang(ctx context.Context) {
	now := time.Now()
	if r.postmaster.Alive() || r.patroniIsBusy() {
		r.idleSince = time.Time{}
		return
	}
	if r.idleSince.IsZero() {
		r.idleSince = now
		return
	}
	if now.Sub(r.idleSince) < r.host.hangAfter {
		return
	}
	r.Log.Warn("Patroni hangs without PostgreSQL, restarting it")
	if r.KillAll(ctx, "Patroni hangs") {
		r.retry = pace.Backoff{}
		r.idleSince = time.Time{}
		r.guard.Record(ctx, fence.Incident{
			Kind: fence.Hang, Database: r.Want.Scope, Member: r.Want.Name, Host: r.host.Name, Detected: now,
			Cause: "it ran for " + r.host.hangAfter.String() + " without PostgreSQL and without working on it",
		})
	}
}

// patroniIsBusy: there is nothing to run yet, or a child of Patroni works.
// Python's resource tracker is a child that never ends and never works.
func (r *runner) patroniIsBusy() bool {
	if _, err := postgres.ReadControl(r.dataDir); errors.Is(err, postgres.ErrNoData) {
		return true
	}
	all, err := r.Group.Inside()
	if err != nil {
		return true
	}
	for _, p := range all {
		if p != r.patroni.Process && !isResourceTracker(p.PID) {
			return true
		}
	}
	return false
}

func isResourceTracker(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	// A process that ended meanwhile does not work either.
	return err != nil || bytes.Contains(line, []byte("multiprocessing.resource_tracker"))
}
