package cut

import (
	"context"
	"slices"
	"sync"

	"howdah/internal/host/agent"
	"howdah/internal/host/kernelcut"
)

// Cutter cuts the standbys of this host off from lost primaries, so that no
// confirmation of theirs reaches one any more.
type Cutter interface {
	Name() string
	// Sync makes exactly these cuts real, lifts all others, and tells of those that
	// hold, as soon as they do: also when it answers an error, of the rest, and also
	// after it has returned. It is idempotent, cheap when nothing changes, and does not
	// wait for a standby that is sick.
	Sync(ctx context.Context, cuts []Cut, made func(...Cut)) error
}

// Choose prefers the kernel: its cut does not depend on any process. standbys are all members of
// the host.
func Choose(ctx context.Context, a *agent.Agent, standbys func() []*Standby) Cutter {
	k := &kernelcut.Rules{Table: kernelcut.Table(a.HomeID, a.Name)}
	if err := k.Try(ctx); err != nil {
		a.Log.Info("no cut in the kernel, cutting WAL receivers", "reason", err)
		return &Receiver{Standbys: standbys}
	}
	return Kernel{k}
}

// Kernel cuts the whole host off, whoever its standbys are.
type Kernel struct{ In *kernelcut.Rules }

// Name is how it cuts.
func (k Kernel) Name() string { return "kernel" }

// Sync holds the cuts of all the host.
func (k Kernel) Sync(ctx context.Context, cuts []Cut, made func(...Cut)) error {
	var addresses []string
	for _, c := range cuts {
		addresses = append(addresses, c.From.Postgres, c.From.Patroni)
	}
	changed, err := k.In.Hold(ctx, addresses)
	if changed {
		made(cuts...)
	}
	return err
}

// Receiver ends the WAL receiver of a standby and gives it no address to
// connect to again, for hosts that may not change the kernel's rules. Patroni
// may promote such a standby like any other.
type Receiver struct {
	Standbys func() []*Standby // all members of the host

	mu   sync.Mutex
	busy map[*Standby]*dealing // guarded by mu
}

// dealing is a standby that is being dealt with, and what is wanted of it next.
type dealing struct {
	again bool
	next  []Cut
}

// Name is how it cuts.
func (c *Receiver) Name() string { return "receiver" }

// Sync deals with all standbys at once, and does not wait for them: one that is sick, or
// whose disk hangs, delays nobody else. A cut is made again at every look, because
// Patroni tries to undo it.
func (c *Receiver) Sync(ctx context.Context, cuts []Cut, made func(...Cut)) error {
	for _, s := range c.Standbys() {
		own := slices.DeleteFunc(slices.Clone(cuts), func(c Cut) bool { return c.Standby != s })
		if !c.begin(s, own) {
			continue
		}
		s.Go(func() {
			for more := true; more; own, more = c.next(s) {
				if err := c.Deal(ctx, s, own, made); err != nil && ctx.Err() == nil {
					s.Log.Error("cut off a lost primary", "error", err)
				}
			}
		})
	}
	return nil
}

// Deal makes or lifts the cut of one standby, as the cases want that name it. Nobody else deals
// with it meanwhile.
func (c *Receiver) Deal(ctx context.Context, s *Standby, own []Cut, made func(...Cut)) error {
	needed := slices.DeleteFunc(own, func(c Cut) bool { return !s.mustBeCut(c.From) })
	if len(needed) == 0 && !s.IsCut() {
		return nil
	}
	if err := s.cutReceiver(ctx, len(needed) > 0); err != nil {
		return err
	}
	made(needed...)
	return nil
}

// begin reports whether nobody deals with a standby; whoever does is told what is wanted.
func (c *Receiver) begin(s *Standby, own []Cut) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.busy[s]; d != nil {
		d.again, d.next = true, own
		return false
	}
	if c.busy == nil {
		c.busy = map[*Standby]*dealing{}
	}
	c.busy[s] = &dealing{}
	return true
}

// next is what was wanted meanwhile.
func (c *Receiver) next(s *Standby) (own []Cut, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.busy[s]
	if !d.again {
		delete(c.busy, s)
		return nil, false
	}
	own, d.again, d.next = d.next, false, nil
	return own, true
}
