// Package fault breaks a Howdah on this machine on purpose, for one of its databases. Each fault has a
// proof that it took place, and is undone: also if the lab is killed, by the next one, from a record that
// is on the disk before anything is done.
//
// Only processes that the home's own records name are ever touched, by their number and their start time.
package fault

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/host/proc/table"
	"howdah/internal/identity/home"
)

// Ground is where faults are made.
type Ground struct {
	Home *home.Home // on this machine
	API  *client.Client
	// Truth is what the control plane knows of the database.
	Truth func(ctx context.Context) (*admin.Database, error)
	Dir   string // for the record
	Clock bool   // the user lets the clock be set
}

// Made is a fault that was made.
type Made struct {
	// Proof says by what it is known that the fault took place.
	Proof string
	// Lasts says that it lasts until it is undone.
	Lasts  bool
	ground *Ground
	record Record
	healed func() error // whether what was done is undone; nil: nothing is to be seen
}

var (
	// ErrImpossible says that a fault cannot be made here. Its words say why.
	ErrImpossible = errors.New("this fault cannot be made here")
	// ErrNotProved says that a fault was made, and that nothing shows it.
	ErrNotProved = errors.New("nothing shows that the fault took place")
	// ErrNoPrimary says that nobody knows which member is the primary.
	ErrNoPrimary = errors.New("nobody knows the primary now")
)

// proofWithin is how long a proof may take.
const proofWithin = 10 * time.Second

// makers has the faults by their names.
var makers = map[string]func(*Ground, context.Context) (*Made, error){
	"kill": (*Ground).kill, "freeze": (*Ground).freeze, "lost-host": (*Ground).loseHost, "lost-etcd": (*Ground).loseEtcd,
	"slow-disk": (*Ground).slowDisk, "full-disk": (*Ground).fillDisk, "clock": (*Ground).stepClock,
	"partition": (*Ground).cut, "slow-network": (*Ground).slow,
}

// Check refuses a fault that cannot be made here, before anything runs.
func (g *Ground) Check(kind string) error {
	switch kind {
	case "partition", "slow-network":
		return g.canCut(kind)
	case "clock":
		if !g.Clock {
			return fmt.Errorf("%w: clock: this machine has one clock, and all that runs on it would see it jump, also what is not Howdah's, and the lab's own "+
				"measurement; if nothing else matters here, give --allow-clock", ErrImpossible)
		}
	}
	if makers[kind] == nil {
		return fmt.Errorf("%w: %s", ErrImpossible, kind)
	}
	return nil
}

// Make makes a fault. What it returns is to be undone, also with an error.
func (g *Ground) Make(ctx context.Context, kind string) (*Made, error) {
	if err := g.Check(kind); err != nil {
		return nil, err
	}
	return makers[kind](g, ctx)
}

// begin remembers a fault that is about to be made. What an earlier one left is undone first: a record is
// never replaced before that.
func (g *Ground) begin(r Record) (*Made, error) {
	err := Heal(context.Background(), g.Dir)
	if err != nil {
		return nil, err
	}
	if r.Era, err = table.System.Era(); err != nil {
		return nil, err
	}
	r.Began = time.Now().UTC()
	if err := r.write(g.Dir); err != nil {
		return nil, err // nothing is made that nobody remembers
	}
	return &Made{ground: g, record: r, Lasts: true}, nil
}

// Undo undoes the fault, and returns a proof that it is undone. It is idempotent.
func (m *Made) Undo() (proof string, err error) {
	if m == nil {
		return "", nil
	}
	if err := m.record.undo(m.ground.Dir); err != nil {
		return "", err
	}
	if m.healed == nil {
		return "nothing of it is left", nil
	}
	if err := m.healed(); err != nil {
		return "", fmt.Errorf("undo the fault %s: %w", m.record.Kind, err)
	}
	return fmt.Sprintf("%s is undone", m.record.Kind), nil
}

// eventually looks until there is no error any more.
func eventually(ctx context.Context, look func() error) error { return within(ctx, proofWithin, look) }

// within is eventually, with a time of its own.
func within(ctx context.Context, limit time.Duration, look func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := look()
		if err == nil {
			return nil
		}
		if !pace.Sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("%w: %w", ErrNotProved, err)
		}
	}
}

var (
	errLives  = errors.New("it lives still")
	errGoesOn = errors.New("it goes on")
	errStands = errors.New("it stands still")
	errClock  = errors.New("the clock was not set back")
)

// kill kills the primary's postmaster, as a crash would. What comes of it is Howdah's.
func (g *Ground) kill(ctx context.Context) (*Made, error) {
	m, err := g.primary(ctx)
	if err != nil {
		return nil, err
	}
	p, err := m.postmaster()
	if err != nil {
		return nil, err
	}
	if err := send(p, syscall.SIGKILL); err != nil {
		return nil, err
	}
	err = eventually(ctx, func() error {
		if _, there := standing([]proc.Process{p}); there > 0 {
			return errLives
		}
		return nil
	})
	return &Made{ground: g, record: Record{Kind: "kill"}, Proof: fmt.Sprintf("process %d, the postmaster of %s, is gone", p.PID, m)}, err
}

// clockStep is by how much the clock is set forward.
const clockStep = 60 * time.Second

// stepClock sets the machine's clock forward.
func (g *Ground) stepClock(ctx context.Context) (*Made, error) {
	offset, err := clocks()
	if err != nil {
		return nil, err
	}
	made, err := g.begin(Record{Kind: "clock", Clock: &offset})
	if err != nil {
		return made, err
	}
	made.healed = func() error {
		now, err := clocks()
		if err == nil && (now-offset).Abs() > clockTolerance {
			err = fmt.Errorf("%w: it is %s off", errClock, (now - offset).Round(time.Millisecond))
		}
		return err
	}
	before := time.Now()
	if err := putClock(offset + clockStep); err != nil {
		return made, err
	}
	after := time.Now()
	// The wall clock went further than the other one.
	moved := after.Round(0).Sub(before.Round(0)) - after.Sub(before)
	made.Proof = fmt.Sprintf("the clock is %s ahead", moved.Round(time.Millisecond))
	if moved < clockStep-time.Second {
		err = fmt.Errorf("%w: the clock moved by %s", ErrNotProved, moved)
	}
	return made, err
}
