package agent

import (
	"context"
	"net/http"

	"howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
)

// Workload is what runs in one member. All its methods are called by the goroutine of the
// member, at every look in this order: Look, then what is wanted, then Aim and Describe. They do
// not wait for what may take long: meanwhile nobody would see a crash. For its work a member has
// services: its Group of processes, Watch, Limit, Kill, KillAll and EndAll, its User and Dir,
// Tell, and Do, which has work done by its goroutine.
type Workload interface {
	// Beside works beside the goroutine until ctx ends: each of these is a goroutine of its own.
	Beside() []func(context.Context)
	// Told takes note of a newer assignment, which the member has now; changed: it says
	// something else than the one before.
	Told(changed bool)
	// Look notices what has happened by itself. It answers whether the member may be worked on
	// now: somebody may be ending it beside the goroutine.
	Look(ctx context.Context) bool
	// Runs reports whether its leader runs, and takes over one that an earlier agent started.
	Runs(ctx context.Context) bool
	// Start starts it. Nothing of it that was killed is left, and its directory is open: what
	// is to be encrypted is.
	Start(ctx context.Context)
	// Buried is told when all that was killed is gone at last, so that it may be started at once.
	Buried()
	// Room is how many bytes the member's directory may have, where its file system holds a limit;
	// 0: as many as there are.
	Room() int64
	// Keep has what runs follow the assignment, and puts it under limits.
	Keep(ctx context.Context)
	// Stop ends it in good order, a step at a time, and reports whether nothing runs any more.
	Stop(ctx context.Context) bool
	// Ended is told of the end of the leader or the server, which is cleared by then.
	Ended(ctx context.Context, p *Process, exit proc.Exit)
	// Aim has what works beside the goroutine look at what runs now.
	Aim()
	// Describe completes a report, which has what the host knows. It asks Trouble for the
	// problems that members of all kinds may have.
	Describe(report *member.Report)
	// Perform does a task, which has to be ended before ctx, and calls finish once.
	Perform(ctx context.Context, task member.Task, finish func(error))
	// Performed reports whether a task that an earlier agent began was done. An error: it
	// cannot be known yet.
	Performed(ctx context.Context, task member.Task) (bool, error)
}

// Kind is what workloads of one kind are, and what a host has for all of them.
type Kind interface {
	// Dirs are patterns of directories, below the host's, that may have an operating-system
	// user of their own beside those of members.
	Dirs() []string
	// Open prepares what the host has for them. The host's directories are there, and nothing
	// runs yet.
	Open(ctx context.Context, a *Agent) error
	// Begin is called once, before the first member is looked at. What it answers works until
	// its ctx ends.
	Begin(ctx context.Context) (run func(context.Context) error)
	// New is the workload of a member. Nothing of it may happen before its goroutine runs.
	New(m *Member) Workload
	// Handler answers control planes.
	Handler() http.Handler
	// Facts completes the description of the host.
	Facts(h *member.Host) error
	// Release frees what a member, of which nothing runs, has elsewhere than in its directory:
	// in the kernel, say. It is called before the directory is locked or removed.
	Release(dir string) error
	// Forget removes what a member that was deleted has in other directories of the host.
	Forget(id string) error
	// Jobs are the kinds of jobs that hosts of this kind of workload do for operations. It is called
	// once, after Open.
	Jobs() []job.Kind
	// Inspector begins a new round of looks at data that are here: see Inspect.
	Inspector() Inspector
}

// Inspector looks at data of members for a home that was restored.
type Inspector interface {
	// Inspect completes what is said of a member whose directory can be read; not ok: it has no
	// data.
	Inspect(ctx context.Context, c regain.Copy) (_ regain.Copy, ok bool)
}
