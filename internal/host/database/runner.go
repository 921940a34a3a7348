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
	"howdah/internal/host/database/guard"
	"howdah/internal/host/database/keys"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/database/spare"
	"howdah/internal/host/database/watchdog"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
)

// Periods of a runner.
const (
	// hangAfter: see Agent.
	hangAfter = 15 * time.Second
	// orphanGrace is how long a PostgreSQL that nobody could replace may go on
	// while its Patroni is started again.
	orphanGrace = 5 * time.Second
)

// runner is the workload of a member that is a database's: Patroni, and the PostgreSQL that it
// starts. Looking at the database (prober) goes on beside the goroutine of the member.
type runner struct {
	*agent.Member
	host *Host

	probe  *probe.Prober
	leases *watchdog.Lease
	logs   *logKeeper
	hangs  *watchdog.Server
	guard  *guard.Guard
	keys   *keys.Ring
	aside  *aside.Data
	// standby is the member as far as it may have to be cut off.
	standby *cut.Standby
	taker   *spare.Taker // of prepared data

	starting sync.Mutex  // held while Patroni is started, or while a member that hangs is ended
	fencing  atomic.Bool // the latter

	// All below belongs to the goroutine.
	patroni    *agent.Process // the leader
	postmaster *agent.Process // the server
	retry      pace.Backoff   // of starts
	started    time.Time      // Patroni was started, or taken over, at
	named      string         // what the running Patroni calls itself
	ownKey     bool           // it shows the member's own key
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
	rendered   int64        // generation of the configuration on disk; 0: it is to be brought again
	told       told         // what that was made of
	// driftLooked is when the member was held against its configuration last.
	driftLooked time.Time
	certLooked  time.Time // when the certificate was looked at last
	module      moduleLook
	nudged      time.Time // when Patroni was told of its certificate last
}

func newRunner(a *Host, m *agent.Member) *runner {
	r := &runner{Member: m, host: a, patroni: &m.Leader, postmaster: &m.Server}
	r.probe, r.logs = probe.New(a.Agent, m.ID), newLogKeeper(a.logDir(m.ID), m.Log)
	r.leases = &watchdog.Lease{Agent: a.Agent, Patience: a.leasePatience, Tell: func(p proc.Process, look watchdog.LeaseLook) {
		r.Do(func(context.Context) { r.endHung(p, look) })
	}}
	r.hangs = watchdog.NewServer(a.Agent, a.Hang, r.probe, r.endHang)
	r.guard = &guard.Guard{Member: m, Agent: a.Agent, DataDir: r.dataDir(), Revoked: func() { r.retry = pace.Backoff{} }}
	r.keys = &keys.Ring{Member: m, Agent: a.Agent}
	r.aside = &aside.Data{Member: m, Agent: a.Agent, DataDir: r.dataDir(), Leadership: r.guard.Leadership}
	r.taker = &spare.Taker{Member: m, Keeper: a.spares, DataDir: r.dataDir()}
	r.standby = &cut.Standby{
		Member: m, DataDir: r.dataDir(), LSN: func() lsn.LSN { return r.probe.Last().Facts.LSN },
		Admin: func(ctx context.Context) (*pgx.Conn, error) { return dial.Admin(ctx, a.Agent, r.probe.Target()) },
	}
	return r
}

// Beside are those who look at the database.
func (r *runner) Beside() []func(context.Context) {
	return []func(context.Context){r.probe.Run, r.leases.Run, r.hangs.Run, r.logs.run}
}

// Told has a configuration rendered that says something else, and started at once what
// failed to start before.
func (r *runner) Told(changed bool) {
	if changed {
		r.rendered = 0
	}
	r.logs.aim(r.Want)
	r.retry = pace.Backoff{}
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
	r.startPatroni(ctx)
}

// Ended is told of the end of Patroni or PostgreSQL.
func (r *runner) Ended(ctx context.Context, p *agent.Process, exit proc.Exit) {
	if p == r.patroni {
		r.patroniDied(exit)
		return
	}
	r.postmasterDied(ctx, exit)
}

// Aim has those who look at the database look at what runs now.
func (r *runner) Aim() {
	r.aimLeases()
	r.aimHangs()
	r.aimProbe()
}

func (r *runner) dataDir() string { return filepath.Join(r.Dir(), "data") }

// findPostmaster notices a PostgreSQL that Patroni started.
func (r *runner) findPostmaster(ctx context.Context) {
	if r.postmaster.Alive() {
		return
	}
	pid, err := postgres.Postmaster(r.dataDir())
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
