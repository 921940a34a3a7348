package database

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"howdah/internal/engine/patroni/rest"
	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/guard"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// askAgain is the pause before a Patroni that was busy is asked again.
const askAgain = 200 * time.Millisecond

// Perform does a task. The restart goes on beside the member, which must stay
// able to see a crash; the others are its own work.
func (r *runner) Perform(ctx context.Context, task member.Task, finish func(error)) {
	switch task.Kind {
	case member.Restart:
		client, err := r.deeds.rest()
		if err != nil {
			finish(err)
			return
		}
		r.Go(func() {
			defer client.HTTP.CloseIdleConnections()
			finish(restart(ctx, client))
		})
	case member.Handover:
		finish(r.deeds.handOver(ctx, task.Force))
	case member.Revive:
		finish(r.deeds.revive(ctx))
	default:
		finish(fmt.Errorf("task %q is unknown to this agent: %w", task.Kind, agent.ErrTask))
	}
}

// Performed: a handover was done if somebody else leads.
func (r *runner) Performed(ctx context.Context, task member.Task) (bool, error) {
	l, err := r.guard.Leadership(ctx)
	return err == nil && task.Kind == member.Handover && l.Leader != "" && l.Leader != r.Name(), err
}

// restart asks Patroni until it is not at something else any more: a new primary
// serves before its Patroni has ended the bootstrap.
func restart(ctx context.Context, patroni rest.Member) error {
	for {
		err := patroni.Restart(ctx)
		if !errors.Is(err, rest.ErrBusy) || !pace.Sleep(ctx, askAgain) {
			return err
		}
	}
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

// deeds are the tasks of a database's member. It belongs to the goroutine of the member.
type deeds struct {
	*agent.Member
	host  *agent.Agent
	guard *guard.Guard
	probe *probe.Prober
	again func() // it may be started at once
}

func (d *deeds) rest() (rest.Member, error) { return dial.Patroni(d.host, d.Want) }

// handOver gives the primary role to a standby in an orderly way: a clean stop sends
// everything to the standbys first, so nothing is lost and nothing has to be rewound
// (docs/design/availability.md). Until the stop it can be called off. A forced one goes on
// without a checkpoint or an orderly stop: then PostgreSQL is killed, like one that died.
func (d *deeds) handOver(ctx context.Context, force bool) error {
	began := time.Now()
	l, err := d.guard.Leadership(ctx)
	if err != nil {
		return err
	}
	if l.Leader != d.Want.Name {
		return fmt.Errorf("%s is not the primary: %w", d.Want.Name, agent.ErrTask)
	}
	if !l.Replaceable() {
		return fmt.Errorf("%w: %w", fence.ErrNotSafe, agent.ErrTask)
	}
	if !d.Leader.Alive() || !d.Server.Alive() {
		return fmt.Errorf("the primary does not run: %w", agent.ErrTask)
	}
	if err := d.guard.Writable(ctx); err != nil {
		return fmt.Errorf("%w: %w", err, agent.ErrTask)
	}
	// On a full disk there may be no room for a checkpoint: the more reason to go.
	if err := d.checkpoint(ctx, force); err != nil {
		if _, _, full := d.Disk(); !full && !force {
			return err
		}
		d.Log.Warn("handing over without a checkpoint", "error", err)
	}
	incident := fence.Incident{
		Kind: fence.Failover, Planned: true, Database: d.Want.Scope, Member: d.Want.Name, Host: d.host.Name,
		Cause: "planned", Detected: time.Now(),
	}
	if err := d.stopDatabase(ctx); err != nil && !force {
		return err
	} else if err != nil {
		d.Log.Warn("handing over without an orderly stop", "error", err)
		incident.Planned, incident.Cause = false, "planned, but it could not be stopped in good order: "+err.Error()
	}
	if err := d.guard.Fence(ctx, l, &incident); err != nil {
		if now, lookErr := d.guard.Leadership(ctx); lookErr == nil && now.Leader != "" && now.Leader != d.Want.Name {
			return nil // somebody else was quicker
		}
		// Patroni is started again by converge, and leads on if nobody else does.
		return fmt.Errorf("%w: %w", err, agent.ErrTask)
	}
	d.guard.Record(ctx, incident)
	d.Log.Info("handed over", "took", time.Since(began).String())
	return nil
}

// revive ends a PostgreSQL that waits to be a primary, with its Patroni; converge
// starts them again.
func (d *deeds) revive(ctx context.Context) error {
	l, err := d.guard.Leadership(ctx)
	switch s := d.probe.Last(); {
	case err != nil:
		return err
	case l.Leader != "":
		return fmt.Errorf("%s is the primary: %w", l.Leader, agent.ErrTask)
	case !s.Ready || !s.Facts.InRecovery:
		return fmt.Errorf("PostgreSQL is not a standby: %w", agent.ErrTask)
	case !d.KillAll(ctx, "its bootstrap is stuck"):
		return fmt.Errorf("not all processes ended: %w", agent.ErrTask)
	}
	d.again()
	return nil
}

// checkpoint shortens the stop that follows.
func (d *deeds) checkpoint(ctx context.Context, force bool) error {
	within := checkpointTimeout
	if force {
		within = forcedTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := dial.Admin(ctx, d.host, d.Want)
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
func (d *deeds) stopDatabase(ctx context.Context) error {
	if err := d.host.Procs.Signal(d.Leader.Process, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		return fmt.Errorf("stop Patroni: %w", err)
	}
	select {
	case <-d.Leader.Exit:
		d.Leader.Clear()
	case <-time.After(killTimeout):
		// When it ends, PostgreSQL is an orphan, and is dealt with as such.
		return fmt.Errorf("Patroni was killed and does not end: %w", agent.ErrTask)
	case <-ctx.Done():
		return fmt.Errorf("stop Patroni: %w", ctx.Err())
	}
	// SIGINT is PostgreSQL's fast shutdown.
	if err := d.host.Procs.Signal(d.Server.Process, syscall.SIGINT); err != nil && !errors.Is(err, proc.ErrGone) {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	select {
	case <-d.Server.Exit:
		d.Server.Clear()
	case <-time.After(fastStopTimeout):
		d.Log.Warn("PostgreSQL did not stop in time")
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
