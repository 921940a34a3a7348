package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"

	"howdah/internal/engine/patroni/rest"
	"howdah/internal/failover/fence"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// writeAgain is the pause before a write that etcd did not take is tried again.
const writeAgain = 200 * time.Millisecond

// askAgain is the pause before a Patroni that was busy is asked again.
const askAgain = 200 * time.Millisecond

// followTasks does what the control plane asks for, each task once.
func (a *Agent) followTasks(ctx context.Context) error {
	var claims sync.WaitGroup
	defer claims.Wait()
	prefix := state.TaskPrefix(a.Name)
	cache := state.NewCache(a.store.Client, a.Log, prefix)
	cache.OnChange(func(keys []string) {
		for _, key := range keys {
			task, err := state.Load[member.Task](cache, key)
			if err != nil {
				a.forgetTask(state.Tail(key, prefix))
				continue
			}
			if a.note(task.Value.ID) {
				claims.Go(func() { a.begin(ctx, task.Value) })
			}
		}
	})
	return cache.Run(ctx)
}

// begin claims a task: it writes that the task began, in a transaction that fails if it began
// before. If an agent died in the middle of a task, the next agent does not do it again; it
// finds out how the task ended. begin tries until etcd answers, or the task is gone.
func (a *Agent) begin(ctx context.Context, task member.Task) {
	result := member.Result{ID: task.ID, Member: task.Member, Began: time.Now().UTC()}
	r := a.runner(ctx, task.Member)
	for a.doing(task.ID) {
		began, err := a.claim(ctx, result)
		switch {
		case err != nil:
			a.Log.Warn("begin task", "task", task.ID, "error", err)
		case began.Began.Equal(result.Began):
			r.do(func(ctx context.Context) { r.perform(ctx, task, result) })
			return
		default:
			if !began.Done && !began.Failed {
				r.do(func(ctx context.Context) { r.conclude(ctx, task, began) })
			}
			return
		}
		if !sleep(ctx, writeAgain) {
			return
		}
	}
}

// claim writes that a task began, and answers with what is written: by this call, by
// one whose answer was lost, or by an earlier agent.
func (a *Agent) claim(ctx context.Context, result member.Result) (member.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	_, err := a.store.Commit(ctx, state.Swap(state.Result(result.ID), 0, result))
	if !errors.Is(err, state.ErrConflict) {
		return result, err
	}
	old, err := state.Get[member.Result](ctx, a.store, state.Result(result.ID))
	return old.Value, err
}

// doing reports whether this very agent deals with a task.
func (a *Agent) doing(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.begun[id]
}

func (a *Agent) forgetTask(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.begun, id)
}

// note answers false when this agent deals with the task already.
func (a *Agent) note(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.begun[id]
	a.begun[id] = true
	return !known
}

var errTask = errors.New("not done")

// perform does a task. The restart goes on beside the runner, which must stay
// able to see a crash; the handover is the runner's own work.
func (r *runner) perform(ctx context.Context, task member.Task, result member.Result) {
	if err := r.agent.control.newer(); err != nil {
		r.finish(ctx, result, fmt.Errorf("%w: %w", errTask, err))
		return
	}
	limit := task.Limit(time.Now())
	if limit == 0 {
		r.finish(ctx, result, fmt.Errorf("its deadline was %s, which is long past by the clock of this host: %w",
			task.Deadline.UTC().Format(time.RFC3339), errTask))
		return
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	switch task.Kind {
	case member.Restart:
		client, err := r.rest()
		if err != nil {
			defer cancel()
			r.finish(ctx, result, err)
			return
		}
		r.done.Go(func() {
			defer cancel()
			defer client.HTTP.CloseIdleConnections()
			r.finish(ctx, result, restart(limited, client))
		})
	case member.Handover:
		defer cancel()
		r.finish(ctx, result, r.handOver(limited, task.Force))
	case member.Revive:
		defer cancel()
		r.finish(ctx, result, r.revive(limited))
	default:
		defer cancel()
		r.finish(ctx, result, fmt.Errorf("task %q is unknown to this agent: %w", task.Kind, errTask))
	}
}

// restart asks Patroni until it is not at something else any more: a new primary
// serves before its Patroni has ended the bootstrap.
func restart(ctx context.Context, patroni rest.Member) error {
	for {
		err := patroni.Restart(ctx)
		if !errors.Is(err, rest.ErrBusy) || !sleep(ctx, askAgain) {
			return err
		}
	}
}

// conclude finds out how a task ended that an earlier agent began.
func (r *runner) conclude(ctx context.Context, task member.Task, result member.Result) {
	l, err := r.leadership(ctx)
	if err != nil {
		r.done.Go(func() {
			if sleep(ctx, writeAgain) {
				r.do(func(ctx context.Context) { r.conclude(ctx, task, result) })
			}
		})
		return
	}
	if task.Kind == member.Handover && l.Leader != "" && l.Leader != r.name() {
		r.finish(ctx, result, nil)
		return
	}
	r.finish(ctx, result, fmt.Errorf("the agent was restarted in the middle: %w", errTask))
}

// finish tells how a task ended.
func (r *runner) finish(ctx context.Context, result member.Result, err error) {
	result.Ended = time.Now().UTC()
	result.Done, result.Failed = err == nil, err != nil
	if err != nil {
		result.Detail = err.Error()
	}
	r.log.Info("task ended", "task", result.ID, "done", result.Done, "detail", result.Detail)
	r.tell(ctx, state.Put(state.Result(result.ID), result))
}

func (r *runner) rest() (rest.Member, error) { return r.agent.restOf(r.want) }

// restOf asks the Patroni of a member of this host.
func (a *Agent) restOf(as member.Assignment) (rest.Member, error) {
	tls, err := a.Identity.ClientTLS()
	if err != nil {
		return rest.Member{}, err
	}
	return rest.Member{
		HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: tls}},
		URL:  restURL(as),
	}, nil
}

// Times of a handover.
const (
	checkpointTimeout = 30 * time.Second
	// forcedTimeout is the same for a handover that goes on without it.
	forcedTimeout   = 5 * time.Second
	fastStopTimeout = 10 * time.Second
	// killTimeout is how long a process may take to end that was killed: one that waits
	// for a disk does not before the disk answers.
	killTimeout = 5 * time.Second
)

// handOver gives the primary role to a standby in an orderly way: a clean stop sends
// everything to the standbys first, so nothing is lost and nothing has to be rewound
// (docs/design/availability.md). Until the stop it can be called off. A forced one goes on
// without a checkpoint or an orderly stop: then PostgreSQL is killed, like one that died.
func (r *runner) handOver(ctx context.Context, force bool) error {
	began := time.Now()
	l, err := r.leadership(ctx)
	if err != nil {
		return err
	}
	if l.Leader != r.want.Name {
		return fmt.Errorf("%s is not the primary: %w", r.want.Name, errTask)
	}
	if !l.Replaceable() {
		return fmt.Errorf("%w: %w", fence.ErrNotSafe, errTask)
	}
	if !r.patroni.alive() || !r.postmaster.alive() {
		return fmt.Errorf("the primary does not run: %w", errTask)
	}
	if err := r.writable(ctx); err != nil {
		return fmt.Errorf("%w: %w", err, errTask)
	}
	// On a full disk there may be no room for a checkpoint: the more reason to go.
	if err := r.checkpoint(ctx, force); err != nil {
		if !r.disk.full && !force {
			return err
		}
		r.log.Warn("handing over without a checkpoint", "error", err)
	}
	incident := fence.Incident{
		Kind: fence.Failover, Planned: true, Database: r.want.Scope, Member: r.want.Name, Host: r.agent.Name,
		Cause: "planned", Detected: time.Now(),
	}
	if err := r.stopDatabase(ctx); err != nil && !force {
		return err
	} else if err != nil {
		r.log.Warn("handing over without an orderly stop", "error", err)
		incident.Planned, incident.Cause = false, "planned, but it could not be stopped in good order: "+err.Error()
	}
	if err := r.fenceAndRevoke(ctx, l, &incident); err != nil {
		if now, lookErr := r.leadership(ctx); lookErr == nil && now.Leader != "" && now.Leader != r.want.Name {
			return nil // somebody else was quicker
		}
		// Patroni is started again by converge, and leads on if nobody else does.
		return fmt.Errorf("%w: %w", err, errTask)
	}
	r.record(ctx, incident)
	r.log.Info("handed over", "took", time.Since(began).String())
	return nil
}

// revive ends a PostgreSQL that waits to be a primary, with its Patroni; converge
// starts them again.
func (r *runner) revive(ctx context.Context) error {
	l, err := r.leadership(ctx)
	switch s := r.probe.last(); {
	case err != nil:
		return err
	case l.Leader != "":
		return fmt.Errorf("%s is the primary: %w", l.Leader, errTask)
	case !s.ready || !s.facts.InRecovery:
		return fmt.Errorf("PostgreSQL is not a standby: %w", errTask)
	case !r.killAll(ctx, "its bootstrap is stuck"):
		return fmt.Errorf("not all processes ended: %w", errTask)
	}
	r.retry = backoff{}
	return nil
}

// checkpoint shortens the stop that follows.
func (r *runner) checkpoint(ctx context.Context, force bool) error {
	within := checkpointTimeout
	if force {
		within = forcedTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := r.agent.admin(ctx, r.want)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint before handing over: %w", err)
	}
	return nil
}

// stopDatabase ends Patroni, so that it does not interfere, and then PostgreSQL
// in good order. A PostgreSQL that does not end in time is killed by the fence
// that follows: it had sent its commits to the standby before acknowledging them.
func (r *runner) stopDatabase(ctx context.Context) error {
	if err := r.agent.procs.Signal(r.patroni.process, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		return fmt.Errorf("stop Patroni: %w", err)
	}
	select {
	case <-r.patroni.exit:
		r.patroni.clear()
	case <-time.After(killTimeout):
		// When it ends, PostgreSQL is an orphan, and is dealt with as such.
		return fmt.Errorf("Patroni was killed and does not end: %w", errTask)
	case <-ctx.Done():
		return fmt.Errorf("stop Patroni: %w", ctx.Err())
	}
	// SIGINT is PostgreSQL's fast shutdown.
	if err := r.agent.procs.Signal(r.postmaster.process, syscall.SIGINT); err != nil && !errors.Is(err, proc.ErrGone) {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	select {
	case <-r.postmaster.exit:
		r.postmaster.clear()
	case <-time.After(fastStopTimeout):
		r.log.Warn("PostgreSQL did not stop in time")
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
