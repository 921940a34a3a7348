package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// patroniOutput is what Patroni prints besides its log: why it could not start.
const patroniOutput = "patroni.out"

// Keep has Patroni run with the newest configuration, and limits hold.
func (r *runner) Keep(ctx context.Context) {
	r.orphaned = time.Time{}
	r.taker.Offer(ctx)
	r.origin.Tidy(ctx)
	r.settle()
	r.settings.renewCertificate()
	r.nudge()
	if r.rename(ctx) || r.rekey(ctx) {
		return
	}
	r.settings.checkDrift()
	if r.settings.rendered != r.Want.Generation && r.hearsReload() {
		r.reload(ctx)
	}
	r.limitDatabase()
	r.aside.Drop(ctx)
	r.checkHang(ctx)
	r.checkBlind(ctx)
}

// findPatroni takes over a Patroni that an earlier agent started.
func (r *runner) findPatroni(ctx context.Context) bool {
	process, err := r.Group.Leader()
	if err != nil {
		return false
	}
	r.Watch(ctx, r.patroni, process)
	if r.patroni.Alive() {
		r.started = time.Now()
		last := r.keys.Last()
		r.settings.named, r.settings.ownKey = cmp.Or(last.Name, r.Want.PatroniName()), last.OwnKey()
		r.Log.Info("took a running Patroni over", "pid", process.PID)
	}
	return r.patroni.Alive()
}

// startPatroni starts Patroni, after everything that it needs is in place.
func (r *runner) startPatroni(ctx context.Context) {
	now := time.Now()
	if !r.retry.Ready(now) || !r.mayStart() {
		return
	}
	r.retry.Attempt(now)
	r.Acted = r.Want.Generation
	process, err := r.launch(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		r.Problem, r.Detail = problemOf(err), err.Error()
		r.Log.Warn("start Patroni", "attempt", r.retry.Failures, "error", err)
		return
	}
	r.Log.Info("started Patroni", "pid", process.PID, "generation", r.Want.Generation)
	if !r.crashing {
		r.Problem, r.Detail = member.None, ""
	}
	r.started = now
	r.idleSince = time.Time{}
	r.settings.rendered, r.settings.named, r.settings.ownKey = r.Want.Generation, r.Want.PatroniName(), r.Want.OwnKey()
	r.Watch(ctx, r.patroni, process)
}

// mayStart reports whether Patroni may be started: it is known which primaries are lost,
// and the member is cut off from them. While its PostgreSQL runs it needs no leave: the
// host was not started again since, and cuts of a server that runs are made beside. Nor
// does the leave keep a database down: without etcd Patroni starts no PostgreSQL either.
func (r *runner) mayStart() bool {
	if r.postmaster.Alive() {
		return true
	}
	ok, err := r.host.fences.Admits(r.standby)
	if err != nil && r.Problem == member.None {
		r.Problem, r.Detail = member.StartFails, "it has to be cut off from a lost primary first: "+err.Error()
		r.Log.Error("start Patroni", "error", r.Detail)
	}
	return ok
}

var errPort = errors.New("the port is taken")

func problemOf(err error) member.Problem {
	switch {
	case errors.Is(err, postgres.ErrNoVersion):
		return member.NoVersion
	case errors.Is(err, errPort):
		return member.PortTaken
	case errors.Is(err, syscall.ENOSPC):
		return member.DiskFull
	case errors.Is(err, syscall.EDQUOT):
		return member.StorageFull
	default:
		return member.StartFails
	}
}

func (r *runner) launch(ctx context.Context) (proc.Process, error) {
	if err := r.keys.Move(ctx); err != nil {
		return proc.Process{}, err
	}
	m, err := r.settings.render(ctx)
	if err != nil {
		return proc.Process{}, err
	}
	// A PostgreSQL that still runs holds its own port.
	if !r.postmaster.Alive() {
		if err := portsFree(r.Want); err != nil {
			return proc.Process{}, err
		}
		// The next server would do it, if Patroni did not throw the data away before.
		if err := postgres.RemoveShared(r.dataDir); err != nil {
			r.Log.Warn("remove what a killed PostgreSQL left in memory", "error", err)
		}
	}
	command := proc.Command{
		Path: r.host.patroni, Args: []string{m.ConfigPath()}, Dir: r.Dir(), DataDir: r.dataDir,
		LogFile: filepath.Join(r.Dir(), patroni.LogDir, patroniOutput),
		Env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + r.Dir(), "PYTHONUNBUFFERED=1",
			"PYTHONPATH=" + filepath.Join(r.Dir(), patroni.PythonDir),
		},
	}
	if u := r.User(); u != nil {
		command.User = &proc.User{UID: uint32(u.UID), GID: uint32(u.GID)}
		command.NoSubvolumes = r.host.IsVolume(r.ID)
	}
	r.starting.Lock()
	defer r.starting.Unlock()
	return r.Group.Start(ctx, command)
}

// nudgeEvery leaves Patroni time to notice that it was told.
const nudgeEvery = 15 * time.Second

// nudge has Patroni look for a new certificate, when it shows an old one.
func (r *runner) nudge() {
	if !r.probe.Last().RESTOld || time.Since(r.nudged) < nudgeEvery || !r.hearsReload() {
		return
	}
	r.nudged = time.Now()
	if err := r.host.Procs.Signal(r.patroni.Process, syscall.SIGHUP); err != nil && !errors.Is(err, proc.ErrGone) {
		r.Log.Warn("tell Patroni of its certificate", "error", err)
	}
}

// hearsReload: the signal to read the configuration again does not end Patroni, as
// it does while Patroni still starts.
func (r *runner) hearsReload() bool {
	hears, err := r.host.Procs.Survives(r.patroni.Process, syscall.SIGHUP)
	if err != nil && !errors.Is(err, proc.ErrGone) {
		r.Log.Warn("look whether Patroni can be told", "error", err)
		return true
	}
	return hears
}

// reload brings a running Patroni a newer configuration.
func (r *runner) reload(ctx context.Context) {
	now := time.Now()
	if !r.reloads.Ready(now) {
		return
	}
	r.reloads.Attempt(now)
	r.Acted = r.Want.Generation
	m, err := r.settings.render(ctx)
	if err == nil && r.Reported.Ready {
		err = r.settings.admit(m)
	}
	if err == nil {
		err = r.host.Procs.Signal(r.patroni.Process, syscall.SIGHUP)
	}
	if err == nil && r.postmaster.Alive() {
		// Patroni does not tell PostgreSQL of a certificate that was renewed, and of who
		// may log in only in its next round.
		err = r.host.Procs.Signal(r.postmaster.Process, syscall.SIGHUP)
	}
	if err != nil {
		r.Problem, r.Detail = problemOf(err), err.Error()
		r.Log.Warn("reload Patroni", "error", err)
		return
	}
	r.reloads = pace.Backoff{}
	r.settings.rendered = r.Want.Generation
	r.limited = proc.Process{}
	if r.Problem == member.StartFails || r.Problem == member.PortTaken {
		r.Problem, r.Detail = member.None, ""
	}
}

// Stop ends the member's processes in good order: Patroni stops
// PostgreSQL and gives its keys back.
func (r *runner) Stop(ctx context.Context) bool {
	if !r.patroni.Alive() && !r.findPatroni(ctx) {
		if !r.postmaster.Alive() {
			if r.Want.Encrypted {
				_ = r.archiver.unarchived() // its storage is locked before it is described
			}
			return true
		}
		r.KillAll(ctx, "PostgreSQL of a stopped member runs without Patroni")
		return false
	}
	if r.stopping.IsZero() {
		r.stopping = time.Now()
		r.archiver.patient()
		r.Log.Info("stopping", "pid", r.patroni.Process.PID)
		if err := r.host.Procs.Signal(r.patroni.Process, syscall.SIGTERM); err != nil && !errors.Is(err, proc.ErrGone) {
			r.Log.Warn("stop Patroni", "error", err)
		}
		return false
	}
	if time.Since(r.stopping) > stopTimeout {
		r.KillAll(ctx, "did not stop in time")
	}
	return false
}

// limitDatabase puts the database, not its Patroni, under the limits of its class.
func (r *runner) limitDatabase() {
	if r.postmaster.Alive() && r.limited != r.postmaster.Process && r.Limit(r.postmaster.Process) {
		r.limited = r.postmaster.Process
	}
}

// stopTimeout is how long an orderly stop may take: a checkpoint, and standbys
// that receive the rest.
const stopTimeout = 60 * time.Second

// portsFree finds out whether someone else listens where the member shall.
func portsFree(want member.Assignment) error {
	for _, port := range []int{want.Port, want.RESTPort} {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(want.Address, fmt.Sprint(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s:%d: %w", want.Address, port, errPort)
		}
		if err != nil {
			return fmt.Errorf("try %s:%d: %w", want.Address, port, err)
		}
		l.Close()
	}
	return nil
}
