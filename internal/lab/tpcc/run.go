package tpcc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/seats"
	"howdah/internal/lab/tpcc/draw"
	"howdah/internal/lab/tpcc/meter"
	"howdah/internal/lab/tpcc/terminal"
	"howdah/internal/lab/tpcc/user"
	"howdah/internal/lab/tpcc/wire"
)

// Run runs virtual users against a database that Build made, and measures what they did.
//
// What cannot be is refused before anything runs: ErrOption, ErrNone, ErrForeign, ErrUnfinished,
// ErrOtherMode, ErrBusy, ErrStandby, ErrNoRoom. Then the Result is empty. Once all users are connected
// no error of theirs ends the run: it is counted, by SQLSTATE and by second, and lost sessions are
// begun anew. A transaction that others stand in the way of is tried again up to ten times, but not in
// the compatible mode's procedures, since HammerDB gives it up.
//
// If ctx ends, or the server cannot be read at the end, Run returns what it has, and an error. config
// leads to the server itself; counters are read there.
func Run(ctx context.Context, config *pgx.ConnConfig, o RunOptions) (Result, error) {
	o, err := o.checked(config)
	if err != nil {
		return Result{}, err
	}
	m := &monitor{config: wire.Prepared(config), schema: o.Schema}
	defer m.close()
	about, release, err := admit(ctx, m, o)
	if err != nil {
		return Result{}, err
	}
	defer release()
	r := &run{o: o, monitor: m, about: about}
	return r.run(ctx)
}

// admit returns an error if the run cannot be. The claim that it makes lasts as long as the monitor's
// session: after a failover it is gone.
func admit(ctx context.Context, m *monitor, o RunOptions) (About, func(), error) {
	conn, err := pgx.ConnectConfig(ctx, m.config)
	if err != nil {
		return About{}, nil, fmt.Errorf("connect to watch the run: %w", err)
	}
	m.conn = conn
	s, err := seats.Ask(ctx, conn)
	if err == nil {
		err = writable(s)
	}
	if err != nil {
		return About{}, nil, err
	}
	about, err := Look(ctx, conn, o.Schema)
	if err != nil {
		return about, nil, err
	}
	release, err := claim(ctx, conn, o.Schema, true)
	if err != nil {
		return about, nil, err
	}
	// Whoever built it until now may have finished only after the first look.
	if about, err = Look(ctx, conn, o.Schema); err == nil {
		err = about.usable(o.Mode)
	}
	if err == nil {
		err = guard(ctx, o.Targets, o.Users)
	}
	if err != nil {
		release()
		return about, nil, err
	}
	return about, release, nil
}

type run struct {
	o        RunOptions
	monitor  *monitor
	about    About
	recorder *meter.Recorder
	users    []*user.User
	working  sync.WaitGroup
	result   Result
}

func (r *run) run(ctx context.Context) (Result, error) {
	o := r.o
	began := time.Now()
	r.recorder = meter.New(o.Users, began)
	r.result = Result{
		Schema: o.Schema, Mode: o.Mode, Call: o.Call, Warehouses: r.about.Warehouses, Users: o.Users, AllWarehouses: o.AllWarehouses,
		Keying: o.Keying, Seed: o.Seed, RampUp: o.RampUp, Asked: o.Measure, Began: began,
	}
	working, stop := context.WithCancel(ctx)
	err := r.stages(ctx, working)
	r.enter(Ending)
	stop()
	r.end()
	if err := r.result.gather(r.recorder); err != nil {
		return r.result, err
	}
	return r.result, err
}

func (r *run) enter(stage Stage) {
	if r.o.OnStage != nil {
		r.o.OnStage(stage, time.Now())
	}
}

func (r *run) stages(ctx, working context.Context) error {
	r.enter(Spawning)
	if err := r.spawn(ctx, working); err != nil {
		return err
	}
	r.enter(RampingUp)
	if err := wait(ctx, r.o.RampUp); err != nil {
		return fmt.Errorf("ramp up: %w", err)
	}
	return r.measure(ctx)
}

// spawn begins the users one after the other. They work as soon as they are connected.
func (r *run) spawn(ctx, working context.Context) error {
	constants := draw.RunConstants(r.o.Mode, draw.New(r.o.Seed, constantStream))
	targets := make([]*pgx.ConnConfig, len(r.o.Targets))
	for i, target := range r.o.Targets {
		targets[i] = wire.Prepared(target)
	}
	var homes []int
	for i := range r.o.Users {
		u := user.New(user.Options{
			Config: targets[i%len(targets)], Schema: quoted(r.o.Schema), Call: r.o.Call, Keying: r.o.Keying, Meter: r.recorder.Of(i),
			Terminal: terminal.Options{
				User: i, Users: r.o.Users, Warehouses: r.about.Warehouses, AllWarehouses: r.o.AllWarehouses,
				Mode: r.o.Mode, Reach: r.o.Reach, Seed: r.o.Seed, Constants: constants,
			},
		})
		if err := u.Connect(ctx); err != nil {
			return fmt.Errorf("connect user %d of %d: %w", i+1, r.o.Users, err)
		}
		r.users = append(r.users, u)
		r.working.Go(func() { u.Run(working) })
		homes = append(homes, u.Warehouses()[0])
		if i+1 == r.o.Users {
			break
		}
		if err := wait(ctx, r.o.SpawnEvery); err != nil {
			return fmt.Errorf("begin %d users: %w", r.o.Users, err)
		}
	}
	if !r.o.AllWarehouses {
		r.result.SharedHomes = sharedHomes(homes)
	}
	return nil
}

// constantStream is far from the streams of users.
const constantStream = 1 << 32

func (r *run) measure(ctx context.Context) error {
	first, err := r.monitor.read(ctx)
	if err != nil {
		return err
	}
	r.result.From = first.at
	before, err := meter.UsedCPU()
	if err != nil {
		return err
	}
	r.recorder.Open()
	r.enter(Measuring)
	waited := wait(ctx, r.o.Measure-time.Since(first.at))
	// What was measured until it was broken off is still counted.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), awayTime+readTime)
	defer cancel()
	last, err := r.monitor.read(asking)
	r.recorder.Shut()
	r.result.To = time.Now()
	if err == nil {
		r.result.count(first, last)
	}
	after, cpuErr := meter.UsedCPU()
	r.result.CPU = after.Since(before)
	if waited != nil {
		waited = fmt.Errorf("measure: %w", waited)
	}
	return errors.Join(waited, err, cpuErr)
}

// graceTime is how long users may take to finish what they do.
const graceTime = 5 * time.Second

// end waits for the users, and breaks off what takes too long.
func (r *run) end() {
	finished := make(chan struct{})
	go func() {
		r.working.Wait()
		close(finished)
	}()
	grace := time.NewTimer(graceTime)
	defer grace.Stop()
	select {
	case <-finished:
	case <-grace.C:
		for _, u := range r.users {
			u.Break()
		}
		<-finished
	}
}
