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

	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/system/owner"
)

// lookEvery bounds how late a new process is found; the death of one is told by the
// kernel at once.
const lookEvery = 100 * time.Millisecond

// Member keeps one member as it was assigned, and has its workload do what only that can.
// All of its work is done by one goroutine, so that no two deeds on a member ever overlap;
// telling about it (publisher), and what the workload looks at, go on beside it.
type Member struct {
	ID       string
	Log      *slog.Logger
	Group    *proc.Group // its processes; set before anything of the workload runs
	agent    *Agent
	workload Workload

	publisher *publisher
	doomed    atomic.Bool // it was killed, and not everything is proved gone

	inbox *inbox // work for the goroutine
	done  sync.WaitGroup

	// All below belongs to the goroutine. A workload reads Want and Reported, and writes the
	// others that it can see.
	Want     member.Assignment
	Acted    int64           // newest generation that was acted on, with success or not
	Leader   Process         // what is started here
	Server   Process         // what serves, and has the limits; the leader may have started it
	Problem  member.Problem  // that of the processes, for the next report
	Detail   string          // of Problem
	Reported member.Report   // the newest report
	order    json.RawMessage // Want, as it was told
	refused  string          // why the newest assignment was not taken, or ""
	disk     disk
	volume   volume
	secrecy  secrecy
	gone     bool
	dug      time.Time // it was looked last whether everything is gone
}

// Database is the first part of the member's id.
func (m *Member) Database() string {
	database, _, _ := strings.Cut(m.ID, ".")
	return database
}

// Name is the second one.
func (m *Member) Name() string {
	_, name, _ := strings.Cut(m.ID, ".")
	return name
}

// Process is a process whose end will be told; the zero one is none.
type Process struct {
	Process proc.Process
	Exit    <-chan proc.Exit // its end is told here, once
	cancel  context.CancelFunc
}

// Alive reports whether there is one, whose end was not told yet.
func (w *Process) Alive() bool { return w.Exit != nil }

// Clear forgets it.
func (w *Process) Clear() {
	if w.cancel != nil {
		w.cancel()
	}
	*w = Process{}
}

// NewMember is a member whose goroutine does not run.
func NewMember(a *Agent, id string) *Member {
	m := &Member{agent: a, ID: id, Log: a.Log.With("member", id), inbox: newInbox(), publisher: newPublisher(a)}
	m.workload = a.Kind.New(m)
	return m
}

func (m *Member) start(ctx context.Context) {
	m.done.Go(func() { m.run(ctx) })
}

func (m *Member) wait() { m.done.Wait() }

// Workload is what its kind made for it.
func (m *Member) Workload() Workload { return m.workload }

// Go has work done beside the goroutine of the member; whoever ends the agent waits for its end.
func (m *Member) Go(work func()) { m.done.Go(work) }

// Doomed reports whether the member was killed, and not everything of it is proved gone.
func (m *Member) Doomed() bool { return m.doomed.Load() }

// Disk is the room where the member's data are, in bytes, as it was seen last; full: nearly
// nothing is left. It belongs to the goroutine.
func (m *Member) Disk() (size, free int64, full bool) { return m.disk.size, m.disk.free, m.disk.full }

// Do hands work to the member's goroutine, and does not wait; it is dropped when that
// has ended.
func (m *Member) Do(work func(context.Context)) { m.inbox.put(work) }

func (m *Member) assign(o Order) {
	m.Do(func(context.Context) { m.accept(o) })
}

func (m *Member) refuse(err error) {
	m.Do(func(context.Context) { m.refused = err.Error() })
}

// run is the goroutine of the member.
func (m *Member) run(ctx context.Context) {
	defer m.inbox.close()
	var err error
	if m.Group, err = m.agent.Procs.Group(groupName(m.ID)); err != nil {
		m.Log.Error("open process group", "error", err)
		return
	}
	defer m.Leader.Clear()
	defer m.Server.Clear()
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
		case exit := <-m.Leader.Exit:
			m.Leader.Clear()
			m.workload.Ended(ctx, &m.Leader, exit)
		case exit := <-m.Server.Exit:
			m.Server.Clear()
			m.workload.Ended(ctx, &m.Server, exit)
		case <-timer.C:
		}
		m.converge(ctx)
		m.report()
	}
	m.agent.forget(m.ID)
}

// accept takes a newer assignment, and refuses an older one: several deciders,
// even stale ones, can only move a member forward.
func (m *Member) accept(o Order) {
	a := o.Assignment
	if a.Generation < m.Want.Generation {
		m.Log.Warn("stale assignment refused", "generation", a.Generation, "have", m.Want.Generation)
		m.refused = fmt.Sprintf("generation %d is older than %d, which it has", a.Generation, m.Want.Generation)
		return
	}
	changed := !sameContent(a, m.Want)
	m.Want, m.order, m.refused = a, o.text, ""
	m.workload.Told(changed)
	if err := m.remember(); err != nil {
		m.Log.Error("keep assignment", "error", err)
	}
}

// converge makes one step towards what is wanted.
func (m *Member) converge(ctx context.Context) {
	if !m.workload.Look(ctx) {
		return
	}
	switch m.Want.Want {
	case member.Running:
		m.keepRunning(ctx)
	case member.Stopped:
		m.Acted = m.Want.Generation
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
	m.Acted = m.Want.Generation
	if _, err := os.Lstat(m.Dir()); errors.Is(err, os.ErrNotExist) {
		if err := errors.Join(m.Group.Remove(), m.forget(), m.agent.Kind.Forget(m.ID), os.RemoveAll(filepath.Join(m.agent.ownSockets(), m.ID))); err != nil {
			m.KillAll(ctx, "member is being deleted")
			return
		}
		m.report()
		// The goroutine ends only when everyone can know why.
		m.gone = m.publisher.published().Gone
		return
	}
	if !m.KillAll(ctx, "member is being deleted") {
		return
	}
	trash := m.agent.Path(trashDir, fmt.Sprintf("%s-%d", m.ID, time.Now().UnixNano()))
	if err := os.Rename(m.Dir(), trash); err != nil {
		m.Problem, m.Detail = member.StartFails, err.Error()
		m.Log.Error("delete member", "error", err)
		return
	}
	m.Log.Info("member deleted")
}

// Dir is the member's directory. It is where only root may put directories, and belongs to User.
func (m *Member) Dir() string { return m.agent.MemberDir(m.ID) }

// User is whom the member runs as, nil if that is our own user: see Agent.UserOf.
func (m *Member) User() *owner.User { return m.agent.UserOf(m.ID) }

// Watch has the end of a process told: to w.Exit, which the goroutine of the member reads for
// Leader and Server. Where that cannot be, w stays as it is.
func (m *Member) Watch(ctx context.Context, w *Process, p proc.Process) {
	ctx, cancel := context.WithCancel(ctx)
	exit, err := m.agent.Procs.Watch(ctx, p)
	if err != nil {
		cancel()
		m.Log.Warn("watch process", "pid", p.PID, "error", err)
		return
	}
	*w = Process{Process: p, Exit: exit, cancel: cancel}
}

// Limit puts a process of the member, with its children, under the limits of its class. It
// reports whether that is dealt with: in a moment, it may work.
func (m *Member) Limit(process proc.Process) (done bool) {
	limits := proc.Limits{CPUs: m.Want.Limits.CPUs, MemoryBytes: m.Want.Limits.MemoryBytes, IOPS: m.Want.Limits.IOPS}
	if device, err := proc.DeviceOf(m.Dir()); err == nil {
		limits.Device = device
	}
	warnings, err := m.Group.Limit(limits)
	if err == nil {
		err = m.Group.MoveDatabase(process)
	}
	if errors.Is(err, proc.ErrMoving) {
		return false
	}
	if err != nil && !errors.Is(err, proc.ErrGone) {
		m.Log.Warn("limit database", "error", err)
	}
	for _, w := range warnings {
		m.Log.Info("limit not applied", "limit", w.String())
	}
	return true
}

// groupName names the processes of a member: control groups want lower case.
func groupName(id string) string { return strings.ToLower(id) }
