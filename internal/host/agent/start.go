package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// patroniOutput is what Patroni prints besides its log: why it could not start.
const patroniOutput = "patroni.out"

// Keep has Patroni run with the newest configuration, and limits hold.
func (r *runner) Keep(ctx context.Context) {
	r.orphaned = time.Time{}
	r.offerData(ctx)
	r.settle()
	r.renewCertificate()
	r.nudge()
	if r.rename(ctx) || r.rekey(ctx) {
		return
	}
	r.checkDrift()
	if r.rendered != r.want.Generation && r.hearsReload() {
		r.reload(ctx)
	}
	r.limitDatabase()
	r.dropKept(ctx)
	r.checkHang(ctx)
	r.checkBlind(ctx)
}

// findPatroni takes over a Patroni that an earlier agent started.
func (r *runner) findPatroni(ctx context.Context) bool {
	process, err := r.group.Leader()
	if err != nil {
		return false
	}
	r.watch(ctx, r.patroni, process)
	if r.patroni.alive() {
		r.started = time.Now()
		last := r.onDisk()
		r.named, r.ownKey = cmp.Or(last.Name, r.want.PatroniName()), last.ownKey()
		r.log.Info("took a running Patroni over", "pid", process.PID)
	}
	return r.patroni.alive()
}

// startPatroni starts Patroni, after everything that it needs is in place.
func (r *runner) startPatroni(ctx context.Context) {
	now := time.Now()
	if !r.retry.ready(now) || !r.mayStart() {
		return
	}
	r.retry.attempt(now)
	r.acted = r.want.Generation
	process, err := r.launch(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		r.problem, r.detail = problemOf(err), err.Error()
		r.log.Warn("start Patroni", "attempt", r.retry.failures, "error", err)
		return
	}
	r.log.Info("started Patroni", "pid", process.PID, "generation", r.want.Generation)
	if !r.crashing {
		r.problem, r.detail = member.None, ""
	}
	r.started = now
	r.idleSince = time.Time{}
	r.rendered, r.named, r.ownKey = r.want.Generation, r.want.PatroniName(), r.want.OwnKey()
	r.watch(ctx, r.patroni, process)
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
	if err := r.moveKeys(ctx); err != nil {
		return proc.Process{}, err
	}
	m, err := r.render(ctx)
	if err != nil {
		return proc.Process{}, err
	}
	// A PostgreSQL that still runs holds its own port.
	if !r.postmaster.alive() {
		if err := r.portsFree(); err != nil {
			return proc.Process{}, err
		}
		// The next server would do it, if Patroni did not throw the data away before.
		if err := postgres.RemoveShared(r.dataDir()); err != nil {
			r.log.Warn("remove what a killed PostgreSQL left in memory", "error", err)
		}
	}
	command := proc.Command{
		Path: r.agent.patroni, Args: []string{m.ConfigPath()}, Dir: r.dir(), DataDir: r.dataDir(),
		LogFile: filepath.Join(r.dir(), patroni.LogDir, patroniOutput),
		Env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + r.dir(), "PYTHONUNBUFFERED=1",
			"PYTHONPATH=" + filepath.Join(r.dir(), patroni.PythonDir),
		},
	}
	if u := r.user(); u != nil {
		command.User = &proc.User{UID: uint32(u.UID), GID: uint32(u.GID)}
		command.NoSubvolumes = r.agent.isVolume(r.id)
	}
	r.starting.Lock()
	defer r.starting.Unlock()
	return r.group.Start(ctx, command)
}

// portsFree finds out whether someone else listens where the member shall.
func (r *runner) portsFree() error {
	for _, port := range []int{r.want.Port, r.want.RESTPort} {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(r.want.Address, fmt.Sprint(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s:%d: %w", r.want.Address, port, errPort)
		}
		if err != nil {
			return fmt.Errorf("try %s:%d: %w", r.want.Address, port, err)
		}
		l.Close()
	}
	return nil
}

// render writes what Patroni needs: certificates, the scripts that stand for programs of
// PostgreSQL, what has it write whole files, and the configuration, which it answers.
func (r *runner) render(ctx context.Context) (m config.Member, err error) {
	install, err := postgres.Find(r.want.Major)
	if err != nil {
		return m, err
	}
	if err := r.agent.makeMemberDir(r.id); err != nil {
		return m, err
	}
	for _, dir := range []string{patroni.CertDir, patroni.OwnDir, patroni.LogDir, patroni.PythonDir} {
		if err := r.user().MakeDir(filepath.Join(r.dir(), dir)); err != nil {
			return m, err
		}
	}
	if err := r.ensureCertificates(ctx); err != nil {
		return m, err
	}
	if err := errors.Join(r.scripts(install), r.openHandover()); err != nil {
		return m, err
	}
	if err := r.user().ReplaceFile(filepath.Join(r.dir(), patroni.PythonDir, patroni.WholeFile), config.Whole, 0o600); err != nil {
		return m, err
	}
	if err := r.writeLDAP(); err != nil {
		return m, err
	}
	hosts, err := r.etcdHosts()
	if err != nil {
		return m, err
	}
	m, text, digest, err := r.intended(hosts)
	if err != nil {
		return m, err
	}
	r.told = told{hosts: hosts, digest: digest, at: time.Now()}
	return m, r.user().ReplaceFile(m.ConfigPath(), text, 0o600)
}

// renewCertificate has a certificate that ages written anew, with everything
// else, by the reload that follows.
func (r *runner) renewCertificate() {
	if time.Since(r.certLooked) < time.Hour {
		return
	}
	r.certLooked = time.Now()
	if !r.certified() {
		r.rendered = 0
	}
}

// nudgeEvery leaves Patroni time to notice that it was told.
const nudgeEvery = 15 * time.Second

// nudge has Patroni look for a new certificate, when it shows an old one.
func (r *runner) nudge() {
	if !r.probe.last().restOld || time.Since(r.nudged) < nudgeEvery || !r.hearsReload() {
		return
	}
	r.nudged = time.Now()
	if err := r.agent.procs.Signal(r.patroni.process, syscall.SIGHUP); err != nil && !errors.Is(err, proc.ErrGone) {
		r.log.Warn("tell Patroni of its certificate", "error", err)
	}
}

// hearsReload: the signal to read the configuration again does not end Patroni, as
// it does while Patroni still starts.
func (r *runner) hearsReload() bool {
	hears, err := r.agent.procs.Survives(r.patroni.process, syscall.SIGHUP)
	if err != nil && !errors.Is(err, proc.ErrGone) {
		r.log.Warn("look whether Patroni can be told", "error", err)
		return true
	}
	return hears
}

// reload brings a running Patroni a newer configuration.
func (r *runner) reload(ctx context.Context) {
	now := time.Now()
	if !r.reloads.ready(now) {
		return
	}
	r.reloads.attempt(now)
	r.acted = r.want.Generation
	m, err := r.render(ctx)
	if err == nil && r.reported.Ready {
		err = r.admit(m)
	}
	if err == nil {
		err = r.agent.procs.Signal(r.patroni.process, syscall.SIGHUP)
	}
	if err == nil && r.postmaster.alive() {
		// Patroni does not tell PostgreSQL of a certificate that was renewed, and of who
		// may log in only in its next round.
		err = r.agent.procs.Signal(r.postmaster.process, syscall.SIGHUP)
	}
	if err != nil {
		r.problem, r.detail = problemOf(err), err.Error()
		r.log.Warn("reload Patroni", "error", err)
		return
	}
	r.reloads = backoff{}
	r.rendered = r.want.Generation
	r.limited = proc.Process{}
	if r.problem == member.StartFails || r.problem == member.PortTaken {
		r.problem, r.detail = member.None, ""
	}
}

// Stop ends the member's processes in good order: Patroni stops
// PostgreSQL and gives its keys back.
func (r *runner) Stop(ctx context.Context) bool {
	if !r.patroni.alive() && !r.findPatroni(ctx) {
		if !r.postmaster.alive() {
			return true
		}
		r.killAll(ctx, "PostgreSQL of a stopped member runs without Patroni")
		return false
	}
	if r.stopping.IsZero() {
		r.stopping = time.Now()
		r.log.Info("stopping", "pid", r.patroni.process.PID)
		if err := r.agent.procs.Signal(r.patroni.process, syscall.SIGTERM); err != nil && !errors.Is(err, proc.ErrGone) {
			r.log.Warn("stop Patroni", "error", err)
		}
		return false
	}
	if time.Since(r.stopping) > stopTimeout {
		r.killAll(ctx, "did not stop in time")
	}
	return false
}

// limitDatabase puts the database, not its Patroni, under the limits of its class.
func (r *runner) limitDatabase() {
	if r.postmaster.alive() && r.limited != r.postmaster.process && r.limit(r.postmaster.process) {
		r.limited = r.postmaster.process
	}
}

// stopTimeout is how long an orderly stop may take: a checkpoint, and standbys
// that receive the rest.
const stopTimeout = 60 * time.Second
