package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// Periods of a runner.
const (
	// lookEvery bounds how late a new postmaster is found; its death is told by the
	// kernel at once.
	lookEvery = 100 * time.Millisecond
	// hangAfter: see Agent.
	hangAfter = 15 * time.Second
	// orphanGrace is how long a PostgreSQL that nobody could replace may go on
	// while its Patroni is started again.
	orphanGrace = 5 * time.Second
)

// runner keeps one member as it was assigned. All of its work is done by one
// goroutine, so that no two deeds on a member ever overlap; looking at the
// database (prober) and telling about it (publisher) go on beside it.
type runner struct {
	agent *Agent
	id    string
	log   *slog.Logger
	group *proc.Group

	probe     *prober
	publisher *publisher
	leases    *leaseWatch
	logs      *logKeeper
	hangs     *hangWatch

	handing  atomic.Bool // a goroutine hands prepared data over
	starting sync.Mutex  // held while Patroni is started, or while a member that hangs is ended
	fencing  atomic.Bool // the latter
	doomed   atomic.Bool // it was killed, and not everything is proved gone

	inbox *inbox // work for the goroutine
	done  sync.WaitGroup

	// All below belongs to the goroutine.
	want       member.Assignment
	order      json.RawMessage // want, as it was told
	patroni    watched
	postmaster watched
	retry      backoff   // of starts
	started    time.Time // Patroni was started, or taken over, at
	named      string    // what the running Patroni calls itself
	ownKey     bool      // it shows the member's own key
	rekeyed    time.Time // the one before was ended for showing another key at
	rekeyTried time.Time // when that was tried last
	crashing   bool      // it ends again and again
	reloads    backoff
	idleSince  time.Time // Patroni runs without PostgreSQL since
	orphaned   time.Time // PostgreSQL runs without Patroni since
	blind      blindness // Patroni may not see its PostgreSQL
	hung       string    // why Patroni was killed for hanging, until its end is dealt with
	owed       *owed     // a replacement that has to wait
	stopping   time.Time // Patroni was asked to stop at
	problem    member.Problem
	detail     string
	refused    string // why the newest assignment was not taken, or ""
	disk       disk
	secrecy    secrecy
	gone       bool
	limited    proc.Process // the postmaster that the limits were set for
	rendered   int64        // generation of the configuration on disk; 0: it is to be brought again
	told       told         // what that was made of
	// driftLooked is when the member was held against its configuration last.
	driftLooked time.Time
	acted       int64     // newest generation that was acted on, with success or not
	certLooked  time.Time // when the certificate was looked at last
	keptLooked  time.Time // for data that were put aside
	lacking     string    // why there is no room for a copy beside them, or ""
	nudged      time.Time // when Patroni was told of its certificate last
	reported    member.Report
	dug         time.Time // it was looked last whether everything is gone
}

// database and name are the two parts of the member's id.
func (r *runner) database() string {
	database, _, _ := strings.Cut(r.id, ".")
	return database
}

func (r *runner) name() string {
	_, name, _ := strings.Cut(r.id, ".")
	return name
}

// watched is a process whose end will be told.
type watched struct {
	process proc.Process
	exit    <-chan proc.Exit
	cancel  context.CancelFunc
}

func (w *watched) alive() bool { return w.exit != nil }

func (w *watched) clear() {
	if w.cancel != nil {
		w.cancel()
	}
	*w = watched{}
}

func newRunner(a *Agent, id string) *runner {
	log := a.Log.With("member", id)
	r := &runner{agent: a, id: id, log: log, inbox: newInbox()}
	r.probe, r.publisher, r.logs = newProber(a, id), newPublisher(a), newLogKeeper(a.logDir(id), log)
	r.leases = &leaseWatch{agent: a, tell: func(p proc.Process, look leaseLook) {
		r.do(func(context.Context) { r.endHung(p, look) })
	}}
	r.hangs = newHangWatch(a, r)
	return r
}

func (r *runner) start(ctx context.Context) {
	r.done.Go(func() { r.run(ctx) })
}

func (r *runner) wait() { r.done.Wait() }

// do hands work to the runner's goroutine, and does not wait; it is dropped when that
// has ended.
func (r *runner) do(work func(context.Context)) { r.inbox.put(work) }

func (r *runner) assign(o order) {
	r.do(func(context.Context) { r.accept(o) })
}

func (r *runner) refuse(err error) {
	r.do(func(context.Context) { r.refused = err.Error() })
}

// run is the goroutine of the member.
func (r *runner) run(ctx context.Context) {
	defer r.inbox.close()
	var err error
	if r.group, err = r.agent.procs.Group(groupName(r.id)); err != nil {
		r.log.Error("open process group", "error", err)
		return
	}
	defer r.patroni.clear()
	defer r.postmaster.clear()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.done.Go(func() { r.probe.run(ctx) })
	r.done.Go(func() { r.publisher.run(ctx) })
	r.done.Go(func() { r.leases.run(ctx) })
	r.done.Go(func() { r.hangs.run(ctx) })
	r.done.Go(func() { r.logs.run(ctx) })
	timer := time.NewTicker(lookEvery)
	defer timer.Stop()
	for !r.gone {
		select {
		case <-ctx.Done():
			return
		case <-r.inbox.ready:
			if work := r.inbox.take(); work != nil {
				work(ctx)
			}
		case exit := <-r.patroni.exit:
			r.patroni.clear()
			r.patroniDied(exit)
		case exit := <-r.postmaster.exit:
			r.postmaster.clear()
			r.postmasterDied(ctx, exit)
		case <-timer.C:
		}
		r.converge(ctx)
		r.aimLeases()
		r.aimHangs()
		r.report()
	}
	r.agent.forget(r.id)
}

// accept takes a newer assignment, and refuses an older one: several deciders,
// even stale ones, can only move a member forward.
func (r *runner) accept(o order) {
	a := o.Assignment
	if a.Generation < r.want.Generation {
		r.log.Warn("stale assignment refused", "generation", a.Generation, "have", r.want.Generation)
		r.refused = fmt.Sprintf("generation %d is older than %d, which it has", a.Generation, r.want.Generation)
		return
	}
	if !sameContent(a, r.want) {
		r.rendered = 0
	}
	r.want, r.order, r.refused = a, o.text, ""
	r.logs.aim(a)
	r.retry = backoff{}
	if r.problem == member.PortTaken {
		r.problem, r.detail = member.None, ""
	}
	if err := r.remember(); err != nil {
		r.log.Error("keep assignment", "error", err)
	}
}

// converge makes one step towards what is wanted.
func (r *runner) converge(ctx context.Context) {
	r.findPostmaster(ctx)
	if r.fencing.Load() {
		return
	}
	r.payOwed(ctx)
	switch r.want.Want {
	case member.Running:
		r.keepRunning(ctx)
	case member.Stopped:
		r.keepStopped(ctx)
	case member.Absent:
		r.remove(ctx)
	}
}

// adopt starts runners for the members that are on disk, with what they were
// assigned last, so that they are guarded before any control plane answers.
func (a *Agent) adopt(ctx context.Context) {
	entries, err := os.ReadDir(a.path("members"))
	if err != nil {
		a.Log.Error("look for members", "error", err)
		return
	}
	for _, e := range entries {
		if !memberIDForm.MatchString(e.Name()) {
			continue
		}
		last, err := a.remembered(e.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			a.Log.Error("kept assignment is unusable, waiting for a new one", "member", e.Name(), "error", err)
			continue
		}
		a.runner(ctx, last.ID).assign(last)
	}
}

func (r *runner) dir() string { return r.agent.memberDir(r.id) }

func (r *runner) dataDir() string { return filepath.Join(r.dir(), "data") }

// findPostmaster notices a PostgreSQL that Patroni started.
func (r *runner) findPostmaster(ctx context.Context) {
	if r.postmaster.alive() {
		return
	}
	pid, err := postgres.Postmaster(r.dataDir())
	if err != nil || pid == 0 {
		return
	}
	process, err := r.agent.procs.Find(pid)
	if err != nil {
		return
	}
	if own, err := inGroup(r.group, process); err != nil || !own {
		return
	}
	r.watch(ctx, &r.postmaster, process)
}

func (r *runner) watch(ctx context.Context, w *watched, p proc.Process) {
	ctx, cancel := context.WithCancel(ctx)
	exit, err := r.agent.procs.Watch(ctx, p)
	if err != nil {
		cancel()
		r.log.Warn("watch process", "pid", p.PID, "error", err)
		return
	}
	*w = watched{process: p, exit: exit, cancel: cancel}
}

// backoff spaces attempts that fail soon: at once, then after 1, 2, 4, … up to 30
// seconds. An attempt whose result lasted a minute starts the count again.
type backoff struct {
	failures int
	last     time.Time
}

func (b *backoff) ready(now time.Time) bool {
	if now.Sub(b.last) > time.Minute {
		b.failures = 0
	}
	return b.failures == 0 || now.Sub(b.last) >= min(time.Second<<min(b.failures-1, 5), 30*time.Second)
}

func (b *backoff) attempt(now time.Time) {
	b.failures++
	b.last = now
}
