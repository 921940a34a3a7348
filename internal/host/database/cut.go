package database

import (
	"context"
	"slices"
	"sync"

	"howdah/internal/host/kernelcut"
)

// cutter cuts the standbys of this host off from lost primaries, so that no
// confirmation of theirs reaches one any more.
type cutter interface {
	name() string
	// sync makes exactly these cuts real, lifts all others, and tells of those that
	// hold, as soon as they do: also when it answers an error, of the rest, and also
	// after it has returned. It is idempotent, cheap when nothing changes, and does not
	// wait for a standby that is sick.
	sync(ctx context.Context, cuts []cut, made func(...cut)) error
}

// chooseCutter prefers the kernel: its cut does not depend on any process.
func chooseCutter(ctx context.Context, a *Host) cutter {
	k := &kernelcut.Rules{Table: kernelcut.Table(a.HomeID, a.Name)}
	if err := k.Try(ctx); err != nil {
		a.Log.Info("no cut in the kernel, cutting WAL receivers", "reason", err)
		return &receiverCutter{host: a}
	}
	return kernelCutter{k}
}

// kernelCutter cuts the whole host off, whoever its standbys are.
type kernelCutter struct{ in *kernelcut.Rules }

func (k kernelCutter) name() string { return "kernel" }

func (k kernelCutter) sync(ctx context.Context, cuts []cut, made func(...cut)) error {
	var addresses []string
	for _, c := range cuts {
		addresses = append(addresses, c.from.Postgres, c.from.Patroni)
	}
	changed, err := k.in.Hold(ctx, addresses)
	if changed {
		made(cuts...)
	}
	return err
}

// receiverCutter ends the WAL receiver of a standby and gives it no address to
// connect to again, for hosts that may not change the kernel's rules. Patroni
// may promote such a standby like any other.
type receiverCutter struct {
	host *Host

	mu   sync.Mutex
	busy map[*runner]*dealing // guarded by mu
}

// dealing is a standby that is being dealt with, and what is wanted of it next.
type dealing struct {
	again bool
	next  []cut
}

func (c *receiverCutter) name() string { return "receiver" }

// sync deals with all standbys at once, and does not wait for them: one that is sick, or
// whose disk hangs, delays nobody else. A cut is made again at every look, because
// Patroni tries to undo it.
func (c *receiverCutter) sync(ctx context.Context, cuts []cut, made func(...cut)) error {
	for _, r := range c.host.allRunners() {
		own := slices.DeleteFunc(slices.Clone(cuts), func(c cut) bool { return c.standby != r })
		if !c.begin(r, own) {
			continue
		}
		r.Go(func() {
			for more := true; more; own, more = c.next(r) {
				if err := c.deal(ctx, r, own, made); err != nil && ctx.Err() == nil {
					r.Log.Error("cut off a lost primary", "error", err)
				}
			}
		})
	}
	return nil
}

// deal makes or lifts the cut of one standby, as the cases want that name it.
func (c *receiverCutter) deal(ctx context.Context, r *runner, own []cut, made func(...cut)) error {
	needed := slices.DeleteFunc(own, func(c cut) bool { return !r.mustBeCut(c.from) })
	if len(needed) == 0 && !r.isCut() {
		return nil
	}
	if err := r.cutReceiver(ctx, len(needed) > 0); err != nil {
		return err
	}
	made(needed...)
	return nil
}

// begin reports whether nobody deals with a standby; whoever does is told what is wanted.
func (c *receiverCutter) begin(r *runner, own []cut) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.busy[r]; d != nil {
		d.again, d.next = true, own
		return false
	}
	if c.busy == nil {
		c.busy = map[*runner]*dealing{}
	}
	c.busy[r] = &dealing{}
	return true
}

// next is what was wanted meanwhile.
func (c *receiverCutter) next(r *runner) (own []cut, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.busy[r]
	if !d.again {
		delete(c.busy, r)
		return nil, false
	}
	own, d.again, d.next = d.next, false, nil
	return own, true
}
