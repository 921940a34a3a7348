package database

import (
	"context"
	"errors"
	"syscall"
	"time"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/host/database/keys"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// keysOf is how a member and others know each other.
func keysOf(as member.Assignment) config.Keys {
	if as.Keys == nil {
		return config.Keys{}
	}
	return config.Keys{Admits: as.Keys.Admits, Own: as.Keys.Own, Only: as.Keys.Only}
}

// rekey has a running Patroni started again with another key: its client of etcd takes none
// while it runs. It reports whether Patroni was ended for that. PostgreSQL goes on, and the
// next Patroni takes it over, with the leader key, which is the member's for as long as
// its lease.
func (r *runner) rekey(ctx context.Context) bool {
	if r.settings.ownKey == r.Want.OwnKey() || !r.quiet() || !r.hearsReload() {
		return false
	}
	if time.Since(r.rekeyTried) < rekeyPause || r.guard.Writable(ctx) != nil {
		return false // the next Patroni could not take over
	}
	err := r.keys.Prepare(ctx)
	if errors.Is(err, keys.ErrNoGates) {
		return false // they will be heard of soon
	}
	r.rekeyTried = time.Now()
	if err != nil {
		r.Log.Warn("the member keeps the key that it has: look whether its host reaches port 2378 of the control planes", "error", err)
		return false
	}
	r.Log.Info("starting Patroni again with another key", "own", r.Want.OwnKey())
	if err := r.host.Procs.Signal(r.patroni.Process, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		r.Log.Warn("end Patroni", "error", err)
		return false
	}
	r.retry, r.rekeyed = pace.Backoff{}, time.Now()
	return true
}

// quiet: nothing is in the middle of becoming something else.
func (r *runner) quiet() bool {
	return r.Reported.Ready || !r.postmaster.Alive() && !r.patroniIsBusy()
}

const (
	// rekeyPause is how long a member goes on as it is where no gate answers.
	rekeyPause = 10 * time.Second
)

// rekeyGrace is how long the next Patroni may take to be started: until then nobody takes
// the end of the one before for its death, and has a standby take over.
const rekeyGrace = 3 * time.Second
