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

// lookEvery bounds how late a new process is found; the death of one is told by the
// kernel at once.
const lookEvery = 100 * time.Millisecond

// Member keeps one member as it was assigned, and has its workload do what only that can.
// All of its work is done by one goroutine, so that no two deeds on a member ever overlap;
// telling about it (publisher), and what the workload looks at, go on beside it.
type Member struct {
	agent    *Agent
	id       string
	log      *slog.Logger
	group    *proc.Group
	workload Workload

	publisher *publisher
	doomed    atomic.Bool // it was killed, and not everything is proved gone

	inbox *inbox // work for the goroutine
	done  sync.WaitGroup

	// All below belongs to the goroutine.
	want     member.Assignment
	order    json.RawMessage // want, as it was told
	acted    int64           // newest generation that was acted on, with success or not
	leader   Process         // what is started here
	server   Process         // what serves, and has the limits; the leader may have started it
	problem  member.Problem
	detail   string
	refused  string // why the newest assignment was not taken, or ""
	disk     disk
	volume   volume
	secrecy  secrecy
	gone     bool
	reported member.Report
	dug      time.Time // it was looked last whether everything is gone
}

// database and name are the two parts of the member's id.
func (m *Member) database() string {
	database, _, _ := strings.Cut(m.id, ".")
	return database
}

func (m *Member) name() string {
	_, name, _ := strings.Cut(m.id, ".")
	return name
}

// Process is a process whose end will be told.
type Process struct {
	process proc.Process
	exit    <-chan proc.Exit
	cancel  context.CancelFunc
}

func (w *Process) alive() bool { return w.exit != nil }

func (w *Process) clear() {
	if w.cancel != nil {
		w.cancel()
	}
	*w = Process{}
}

func newMember(a *Agent, id string) *Member {
	m := &Member{agent: a, id: id, log: a.Log.With("member", id), inbox: newInbox(), publisher: newPublisher(a)}
	m.workload = a.Kind.New(m)
	return m
}

func (m *Member) start(ctx context.Context) {
	m.done.Go(func() { m.run(ctx) })
}

func (m *Member) wait() { m.done.Wait() }

// do hands work to the member's goroutine, and does not wait; it is dropped when that
// has ended.
func (m *Member) do(work func(context.Context)) { m.inbox.put(work) }

func (m *Member) assign(o order) {
	m.do(func(context.Context) { m.accept(o) })
}

func (m *Member) refuse(err error) {
	m.do(func(context.Context) { m.refused = err.Error() })
}

// run is the goroutine of the member.
func (m *Member) run(ctx context.Context) {
	defer m.inbox.close()
	var err error
	if m.group, err = m.agent.procs.Group(groupName(m.id)); err != nil {
		m.log.Error("open process group", "error", err)
		return
	}
	defer m.leader.clear()
	defer m.server.clear()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.done.Go(func() { m.publisher.run(ctx) })
	for _, work := range m.workload.Beside() {
		m.done.Go(func() { work(ctx) })
	}
	timer := time.NewTicker(lookEvery)
	defer timer.Stop()
	for !m.gone {
		select {
		case <-ctx.Done():
			return
		case <-m.inbox.ready:
			if work := m.inbox.take(); work != nil {
				work(ctx)
			}
		case exit := <-m.leader.exit:
			m.leader.clear()
			m.workload.Ended(ctx, &m.leader, exit)
		case exit := <-m.server.exit:
			m.server.clear()
			m.workload.Ended(ctx, &m.server, exit)
		case <-timer.C:
		}
		m.converge(ctx)
		m.report()
	}
	m.agent.forget(m.id)
}

// accept takes a newer assignment, and refuses an older one: several deciders,
// even stale ones, can only move a member forward.
func (m *Member) accept(o order) {
	a := o.Assignment
	if a.Generation < m.want.Generation {
		m.log.Warn("stale assignment refused", "generation", a.Generation, "have", m.want.Generation)
		m.refused = fmt.Sprintf("generation %d is older than %d, which it has", a.Generation, m.want.Generation)
		return
	}
	changed := !sameContent(a, m.want)
	m.want, m.order, m.refused = a, o.text, ""
	m.workload.Told(changed)
	if err := m.remember(); err != nil {
		m.log.Error("keep assignment", "error", err)
	}
}

// converge makes one step towards what is wanted.
func (m *Member) converge(ctx context.Context) {
	if !m.workload.Look(ctx) {
		return
	}
	switch m.want.Want {
	case member.Running:
		m.keepRunning(ctx)
	case member.Stopped:
		m.acted = m.want.Generation
		if m.workload.Stop(ctx) {
			m.lock()
		}
	case member.Absent:
		m.remove(ctx)
	}
}

// keepRunning starts nothing beside what was killed and is not gone, nor before the directory
// is open: what is to be encrypted is never written in the clear.
func (m *Member) keepRunning(ctx context.Context) {
	if !m.buried(ctx) {
		return
	}
	if m.workload.Runs(ctx) {
		m.limitVolume()
		m.workload.Keep(ctx)
	} else if m.open(ctx) {
		m.limitVolume()
		m.workload.Start(ctx)
	}
}

// remove deletes the member: first its processes, then its data, by a rename out
// of the way that a crash cannot leave half done.
func (m *Member) remove(ctx context.Context) {
	m.acted = m.want.Generation
	if _, err := os.Lstat(m.dir()); errors.Is(err, os.ErrNotExist) {
		if err := errors.Join(m.group.Remove(), m.forget(), m.agent.Kind.Forget(m.id), os.RemoveAll(filepath.Join(m.agent.ownSockets(), m.id))); err != nil {
			m.killAll(ctx, "member is being deleted")
			return
		}
		m.report()
		// The runner ends only when everyone can know why.
		m.gone = m.publisher.published().Gone
		return
	}
	if !m.killAll(ctx, "member is being deleted") {
		return
	}
	trash := m.agent.path(trashDir, fmt.Sprintf("%s-%d", m.id, time.Now().UnixNano()))
	if err := os.Rename(m.dir(), trash); err != nil {
		m.problem, m.detail = member.StartFails, err.Error()
		m.log.Error("delete member", "error", err)
		return
	}
	m.log.Info("member deleted")
}

func (m *Member) dir() string { return m.agent.memberDir(m.id) }

// user is whom the member runs as.
func (m *Member) user() *postgres.User { return m.agent.userOf(m.id) }

func (m *Member) watch(ctx context.Context, w *Process, p proc.Process) {
	ctx, cancel := context.WithCancel(ctx)
	exit, err := m.agent.procs.Watch(ctx, p)
	if err != nil {
		cancel()
		m.log.Warn("watch process", "pid", p.PID, "error", err)
		return
	}
	*w = Process{process: p, exit: exit, cancel: cancel}
}

// limit puts a process of the member, with its children, under the limits of its class. It
// reports whether that is dealt with: in a moment, it may work.
func (m *Member) limit(process proc.Process) (done bool) {
	limits := proc.Limits{CPUs: m.want.Limits.CPUs, MemoryBytes: m.want.Limits.MemoryBytes, IOPS: m.want.Limits.IOPS}
	if device, err := proc.DeviceOf(m.dir()); err == nil {
		limits.Device = device
	}
	warnings, err := m.group.Limit(limits)
	if err == nil {
		err = m.group.MoveDatabase(process)
	}
	if errors.Is(err, proc.ErrMoving) {
		return false
	}
	if err != nil && !errors.Is(err, proc.ErrGone) {
		m.log.Warn("limit database", "error", err)
	}
	for _, w := range warnings {
		m.log.Info("limit not applied", "limit", w.String())
	}
	return true
}

// inGroup guards against a recycled number in a stale pid file.
func inGroup(group *proc.Group, p proc.Process) (bool, error) {
	all, err := group.Processes()
	if err != nil {
		return false, err
	}
	for _, own := range all {
		if own == p {
			return true, nil
		}
	}
	return false, nil
}

// groupName names the processes of a member: control groups want lower case.
func groupName(id string) string { return strings.ToLower(id) }
