package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"howdah/internal/admin"
	"howdah/internal/host/proc"
)

// freeze stops all processes of the primary, Patroni included.
func (g *Ground) freeze(ctx context.Context) (*Made, error) {
	m, err := g.primary(ctx)
	if err != nil {
		return nil, err
	}
	return g.stop(ctx, standstill{kind: "freeze", what: "processes of " + m.String(), list: m.processes})
}

// standstill is a fault that stops processes.
type standstill struct {
	kind, what string
	ends       bool // they are killed when it is undone
	list       func() ([]proc.Process, error)
}

var errMore = errors.New("others appear still")

// stop stops all that list finds. What is not stopped yet starts others, so it looks again once all stand
// still, until it finds no other one. Each process is remembered before it is stopped.
func (g *Ground) stop(ctx context.Context, s standstill) (*Made, error) {
	all, err := s.list()
	if err != nil {
		return nil, err
	}
	r := Record{Kind: s.kind, Frozen: all}
	if s.ends {
		r.Ending = all
	}
	made, err := g.begin(r)
	if err != nil {
		return made, err
	}
	made.healed = func() error {
		return eventually(context.WithoutCancel(ctx), func() error {
			if still, _ := standing(made.record.Frozen); still > 0 {
				return errStands
			}
			return nil
		})
	}
	const rounds = 20
	for range rounds {
		if err := made.stand(ctx, s.what); err != nil {
			return made, err
		}
		found, err := s.list()
		if err != nil {
			return made, err
		}
		others := slices.DeleteFunc(found, func(p proc.Process) bool { return slices.Contains(made.record.Frozen, p) })
		if len(others) == 0 {
			return made, nil
		}
		if err := made.also(others, s.ends); err != nil {
			return made, err
		}
	}
	return made, fmt.Errorf("%w: %s: %w", ErrNotProved, s.what, errMore)
}

// also remembers further processes that are about to be stopped.
func (m *Made) also(all []proc.Process, ends bool) error {
	m.record.Frozen = slices.Concat(m.record.Frozen, all)
	if ends {
		m.record.Ending = m.record.Frozen
	}
	return m.record.write(m.ground.Dir)
}

// stand stops all processes that are remembered, and waits until they stand still.
func (m *Made) stand(ctx context.Context, what string) error {
	for _, p := range m.record.Frozen {
		if err := send(p, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	return eventually(ctx, func() error {
		still, there := standing(m.record.Frozen)
		m.Proof = fmt.Sprintf("%d %s stand still", still, what)
		if there == 0 || still < there {
			return fmt.Errorf("%w: %d of %d stand still", errGoesOn, still, there)
		}
		return nil
	})
}

// startsWithin is how long an agent may take to be started anew.
const startsWithin = 30 * time.Second

// loseHost is what clients and other hosts see of a host that lost its power: its agent says nothing any
// more, and all of its members are dead. When it is undone, the agent is started anew, as after a start of
// the machine.
func (g *Ground) loseHost(ctx context.Context) (*Made, error) {
	m, err := g.primary(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.sparesOthers(ctx, "lost-host", m.host); err != nil {
		return nil, err
	}
	made, err := g.stop(ctx, standstill{kind: "lost-host", what: "agent of " + m.host, ends: true, list: func() ([]proc.Process, error) {
		agent, err := g.agent(m.host)
		return []proc.Process{agent}, err
	}})
	if made != nil {
		made.healed = func() error {
			return within(context.WithoutCancel(ctx), startsWithin, func() error { return startedAnew(g.agentLock(m.host), made.record.Ending) })
		}
	}
	if err != nil {
		return made, err
	}
	dead, err := killAll(ctx, func() ([]proc.Process, error) { return g.allOn(m.host) })
	made.Proof = fmt.Sprintf("%d processes of the members on %s are gone, and its agent says nothing", dead, m.host)
	return made, err
}

// killAll kills all that list finds, until it finds nothing more: what is not dead yet starts others. It
// returns how many there were.
func killAll(ctx context.Context, list func() ([]proc.Process, error)) (dead int, err error) {
	seen := map[proc.Process]bool{}
	err = eventually(ctx, func() error {
		all, err := list()
		if err != nil {
			return err
		}
		for _, p := range all {
			seen[p] = true
			if err := send(p, syscall.SIGKILL); err != nil {
				return err
			}
		}
		if len(all) > 0 {
			return fmt.Errorf("%w: %d processes", errLives, len(all))
		}
		return nil
	})
	return len(seen), err
}

// callWithin is how long a call may take that shows whether the control plane answers.
const callWithin = 2 * time.Second

// loseEtcd stops the control plane, which has the only member of etcd in it.
func (g *Ground) loseEtcd(ctx context.Context) (*Made, error) {
	lock := g.Home.RoleLock("serve")
	made, err := g.stop(ctx, standstill{kind: "lost-etcd", what: "control plane", list: func() ([]proc.Process, error) {
		p, err := holderOf(lock)
		if err != nil {
			err = fmt.Errorf("%w: lost-etcd: no control plane runs on this machine: %w", ErrImpossible, err)
		}
		return []proc.Process{p}, err
	}})
	if err != nil {
		return made, err
	}
	ask := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, callWithin)
		defer cancel()
		return g.API.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &admin.Status{})
	}
	if ask(ctx) == nil {
		return made, fmt.Errorf("%w: the API answers", ErrNotProved)
	}
	made.Proof = fmt.Sprintf("process %d, the control plane with etcd, stands still, and the API does not answer", made.record.Frozen[0].PID)
	made.healed = func() error {
		return eventually(context.WithoutCancel(ctx), func() error { return ask(context.WithoutCancel(ctx)) })
	}
	return made, nil
}
