package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
)

// rename has a running Patroni started again under the name that it was assigned: it
// takes no other while it runs. It reports whether Patroni was ended for that.
// PostgreSQL goes on, and the next Patroni takes it over with the keys of the old one,
// so that nobody is elected in between.
func (r *runner) rename(ctx context.Context) bool {
	if r.settings.named == r.Want.PatroniName() || !r.mayRename() {
		return false
	}
	if err := r.guard.Writable(ctx); err != nil {
		return false // the next Patroni could not take over
	}
	r.Log.Info("starting Patroni again under another name", "from", r.settings.named, "to", r.Want.PatroniName())
	if err := r.host.Procs.Signal(r.patroni.Process, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		r.Log.Warn("end Patroni", "error", err)
		return false
	}
	r.retry = pace.Backoff{}
	return true
}

// mayRename: it is a standby of a database that follows another one, so that nothing is
// acknowledged here which an election could lose, and Patroni makes no data now.
func (r *runner) mayRename() bool {
	if r.Want.Cluster.Upstream == nil {
		return false
	}
	if !r.postmaster.Alive() {
		return !r.patroniIsBusy()
	}
	_, err := os.Stat(filepath.Join(r.dataDir, standbyFile))
	return err == nil
}
