package database

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/watchdog"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
)

// Patroni looks at its PostgreSQL through the socket in the host's own directory, clients
// come by TCP. A standby whose socket is not there, or belongs to another server, streams
// and takes logins, and its Patroni says for ever that it is starting: it never counts as
// in sync, and nobody works on it.

// socketEvery is how often the socket is tried.
const socketEvery = 5 * time.Second

// blindStates are what Patroni says of a PostgreSQL that it does not see (its
// postgresql/misc.py).
var blindStates = []string{"starting", "starting after custom bootstrap", "start failed", "stopped", "crashed"}

// standbyFile is what makes a standby of a server that starts.
const standbyFile = "standby.signal"

// blindness is what is known of a standby whose Patroni may not see it.
type blindness struct {
	postmaster proc.Process
	since      time.Time // it has been so since
	tried      time.Time // the socket was tried last
	lost       bool      // the socket does not lead to this PostgreSQL
}

// checkBlind starts again what it takes for Patroni to see a standby that takes logins:
// Patroni alone, or PostgreSQL with it, which makes its socket anew. What becomes of a
// primary is Patroni's to decide: it has a limit for its own starts.
func (r *runner) checkBlind(ctx context.Context) {
	now := time.Now()
	if r.blind.postmaster != r.postmaster.Process {
		r.blind = blindness{postmaster: r.postmaster.Process}
	}
	if !r.follows() {
		r.blind = blindness{}
		return
	}
	if now.Sub(r.blind.tried) >= socketEvery {
		r.blind.tried = now
		r.blind.lost = !dial.LeadsTo(ctx, dial.Socket(r.host.Agent, r.Want), r.postmaster.Process)
	}
	why := whyBlind(r.leases.Said(), r.Reported.Ready, r.blind.lost)
	switch {
	case why == "":
		r.blind.since = time.Time{}
	case r.blind.since.IsZero():
		r.blind.since = now
	case now.Sub(r.blind.since) >= r.host.hangAfter:
		r.endBlind(ctx, why)
	}
}

// follows: PostgreSQL runs as a standby. One that takes no logins, maybe because nobody
// told it how, is known by the file that its Patroni made; promotion removes that.
func (r *runner) follows() bool {
	if !r.postmaster.Alive() {
		return false
	}
	if r.Reported.Ready {
		return r.Reported.InRecovery
	}
	_, err := os.Stat(filepath.Join(r.dataDir, standbyFile))
	return err == nil
}

// whyBlind says why Patroni does not see a standby, or "". A server opens its socket
// before it recovers anything; one that recovers is rightly called starting.
func whyBlind(said watchdog.Says, ready, lost bool) string {
	switch {
	case lost:
		return "PostgreSQL does not answer on the socket where Patroni looks for it"
	case ready && said.Known && slices.Contains(blindStates, said.State):
		return fmt.Sprintf("Patroni says of a PostgreSQL that takes logins: %s", said.State)
	default:
		return ""
	}
}

func (r *runner) endBlind(ctx context.Context, why string) {
	lost, since := r.blind.lost, r.blind.since
	r.blind = blindness{}
	if !lost {
		r.Log.Warn("Patroni does not see its PostgreSQL, killing it", "why", why)
		if err := r.host.Procs.Signal(r.patroni.Process, syscall.SIGKILL); err != nil {
			r.Log.Warn("kill Patroni", "error", err)
			return
		}
		r.hung = why
		return
	}
	r.Log.Warn("Patroni cannot see its PostgreSQL, starting both again", "why", why)
	if r.KillAll(ctx, why) {
		r.retry = pace.Backoff{}
		r.guard.Record(ctx, fence.Incident{
			Kind: fence.Hang, Database: r.Want.Scope, Member: r.Want.Name, Host: r.host.Name, Detected: since, Cause: why,
		})
	}
}
