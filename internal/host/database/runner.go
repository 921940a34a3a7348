package database

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/aside"
	"howdah/internal/host/database/cut"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/drivers"
	"howdah/internal/host/database/guard"
	"howdah/internal/host/database/keys"
	"howdah/internal/host/database/origin"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/database/slots"
	"howdah/internal/host/database/spare"
	"howdah/internal/host/database/walahead"
	"howdah/internal/host/database/warmth"
	"howdah/internal/host/database/watchdog"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// Periods of a runner.
const (
	// hangAfter: see Host.
	hangAfter = 15 * time.Second
	// orphanGrace is how long a PostgreSQL that nobody could replace may go on
	// while its Patroni is started again.
	orphanGrace = 5 * time.Second
)

// runner is the workload of a member that is a database's: Patroni, and the PostgreSQL that it
// starts. Looking at the database (prober) goes on beside the goroutine of the member.
type runner struct {
	*agent.Member
	host    *Host
	dataDir string

	probe  *probe.Prober
	warmth *warmth.Keeper
	driver *drivers.Keeper
	slots  *slots.Keeper
	wal    *walahead.Reader
	leases *watchdog.Lease
	logs   *logKeeper
	hangs  *watchdog.Server
	guard  *guard.Guard
	keys   *keys.Ring
	aside  *aside.Data
	// standby is the member as far as it may have to be cut off.
	standby *cut.Standby
	taker   *spare.Taker // of prepared data
	origin  *origin.Restorer
	// archiver sees to the archive of the database's WAL.
	archiver *archiver

	starting sync.Mutex  // held while Patroni is started, or while a member that hangs is ended
	fencing  atomic.Bool // the latter

	// All below belongs to the goroutine.
	settings   *settings
	deeds      *deeds
	patroni    *agent.Process // the leader
	postmaster *agent.Process // the server
	retry      pace.Backoff   // of starts
	started    time.Time      // Patroni was started, or taken over, at
	rekeyed    time.Time      // the one before was ended for showing another key at
	rekeyTried time.Time      // when that was tried last
	crashing   bool           // it ends again and again
	reloads    pace.Backoff
	idleSince  time.Time    // Patroni runs without PostgreSQL since
	orphaned   time.Time    // PostgreSQL runs without Patroni since
	blind      blindness    // Patroni may not see its PostgreSQL
	hung       string       // why Patroni was killed for hanging, until its end is dealt with
	stopping   time.Time    // Patroni was asked to stop at
	limited    proc.Process // the postmaster that the limits were set for
	module     moduleLook
	nudged     time.Time // when Patroni was told of its certificate last
}

func newRunner(a *Host, m *agent.Member) *runner {
	r := &runner{Member: m, host: a, dataDir: filepath.Join(m.Dir(), patroni.DataDir), patroni: &m.Leader, postmaster: &m.Server}
	r.probe, r.logs = probe.New(a.Agent, m.ID), newLogKeeper(a.logDir(m.ID), m.Log)
	r.warmth = warmth.New(a.Agent, m.ID, r.probe, &a.warming)
	r.driver = drivers.New(a.Agent, m.ID, r.probe)
	r.slots = slots.New(a.Agent, m.ID, r.probe)
	r.wal = &walahead.Reader{Agent: a.Agent, Member: m.ID, DataDir: r.dataDir, Probe: r.probe}
	r.leases = &watchdog.Lease{Agent: a.Agent, Patience: a.leasePatience, Tell: func(p proc.Process, look watchdog.LeaseLook) {
		r.Do(func(context.Context) { r.endHung(p, look) })
	}}
	r.hangs = watchdog.NewServer(a.Agent, a.Hang, r.probe, r.endHang)
	r.guard = &guard.Guard{Member: m, Agent: a.Agent, DataDir: r.dataDir, Revoked: func() { r.retry = pace.Backoff{} }}
	r.keys = &keys.Ring{Member: m, Agent: a.Agent}
	r.aside = &aside.Data{Member: m, Agent: a.Agent, DataDir: r.dataDir, Leadership: r.guard.Leadership}
	r.taker = &spare.Taker{Member: m, Keeper: a.spares, DataDir: r.dataDir}
	r.origin = &origin.Restorer{Member: m, Agent: a.Agent, DataDir: r.dataDir, Open: a.openSource, Made: func() { r.retry = pace.Backoff{} }}
	r.standby = &cut.Standby{
		Member: m, DataDir: r.dataDir, LSN: func() lsn.LSN { return r.probe.Last().Facts.LSN },
		Admin: func(ctx context.Context) (*pgx.Conn, error) { return dial.Admin(ctx, a.Agent, r.probe.Target()) },
	}
	r.archiver = newArchiver(a, r)
	r.settings = &settings{Member: m, host: a, keys: r.keys, aside: r.aside, taker: r.taker, leases: r.leases, archiver: r.archiver}
	r.deeds = &deeds{Member: m, host: a.Agent, guard: r.guard, probe: r.probe, again: func() { r.retry = pace.Backoff{} }}
	return r
}

// Beside are those who look at the database.
func (r *runner) Beside() []func(context.Context) {
	return []func(context.Context){r.probe.Run, r.warmth.Run, r.driver.Run, r.slots.Run, r.wal.Run, r.leases.Run, r.hangs.Run, r.logs.run, r.archiver.prepare, r.archiver.watch.Run, r.unbar, r.answerExchange}
}

// Told has a configuration rendered that says something else, and started at once what
// failed to start before.
func (r *runner) Told(changed bool) {
	if r.Want.Want != member.Stopped {
		r.archiver.left = nil
	}
	if changed {
		r.settings.rendered = 0
	}
	r.logs.aim(r.Want)
	r.retry = pace.Backoff{}
	r.origin.Told()
	if r.Problem == member.PortTaken {
		r.Problem, r.Detail = member.None, ""
	}
}

// Look notices a PostgreSQL that Patroni started, and replaces a primary where that had to wait.
func (r *runner) Look(ctx context.Context) bool {
	r.findPostmaster(ctx)
	if r.fencing.Load() {
		return false
	}
	if !r.origin.Settled(ctx) {
		return false
	}
	r.guard.Pay(ctx)
	if r.Want.Want == member.Running {
		r.stopping = time.Time{}
	}
	return true
}

// Runs: Patroni does.
func (r *runner) Runs(ctx context.Context) bool {
	return r.patroni.Alive() || r.findPatroni(ctx)
}

// Buried has Patroni started at once.
func (r *runner) Buried() { r.retry = pace.Backoff{} }

// Start deals with a PostgreSQL that has no Patroni, and starts Patroni.
func (r *runner) Start(ctx context.Context) {
	r.orphan(ctx)
	if !r.origin.Makes(ctx) {
		r.startPatroni(ctx)
	}
}

// Ended is told of the end of Patroni or PostgreSQL.
func (r *runner) Ended(ctx context.Context, p *agent.Process, exit proc.Exit) {
	if p == r.patroni {
		r.patroniDied(exit)
		return
	}
	r.postmasterDied(ctx, exit)
}

// Aim has those who look at the database look at what runs now: at a lease while there is both a
// Patroni and a PostgreSQL, for hangs of a PostgreSQL that has served since it was started, and as
// a client at one that should serve.
func (r *runner) Aim() {
	serves := r.Want.Want == member.Running && r.postmaster.Alive()
	both := serves && r.patroni.Alive()
	var lease watchdog.LeaseTarget
	if both {
		lease = watchdog.LeaseTarget{Scope: r.Want.Scope, Name: r.settings.named, Patroni: r.patroni.Process}
	}
	r.leases.Aim(lease)
	switch s := r.probe.Last(); {
	case !both:
		r.hangs.Aim(watchdog.Target{})
	case s.Ready:
		r.hangs.Aim(watchdog.Target{Member: r.Want, Postmaster: r.postmaster.Process, Primary: !s.Facts.InRecovery})
	case r.hangs.Aimed().Postmaster != r.postmaster.Process:
		r.hangs.Aim(watchdog.Target{})
	}
	var target member.Assignment
	if serves {
		target = r.Want
	}
	r.probe.Aim(target)
}

// findPostmaster notices a PostgreSQL that Patroni started.
func (r *runner) findPostmaster(ctx context.Context) {
	if r.postmaster.Alive() {
		return
	}
	pid, err := postgres.Postmaster(r.dataDir)
	if err != nil || pid == 0 {
		return
	}
	process, err := r.host.Procs.Find(pid)
	if err != nil {
		return
	}
	if own, err := r.Group.Has(process); err != nil || !own {
		return
	}
	r.Watch(ctx, r.postmaster, process)
}
