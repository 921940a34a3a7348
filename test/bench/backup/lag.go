package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"howdah/api/rds"
)

const (
	lagRow  = "LatestRestorableTime behind now, under load, with 2 failovers"
	noneRow = "  of the looks at it, those that showed none"
)

// behind watches LatestRestorableTime of a database that is used as much as it can take. One failover
// is asked for, and one follows a crash.
func (b *bench) behind(ctx context.Context) (err error) {
	s, end, err := b.begin(ctx, b.tmp, true)
	if err != nil {
		return err
	}
	defer func() { err = end(err) }()
	err = s.create(ctx, func(in *rds.CreateDBInstanceMessage) {
		in.MultiAZ, in.BackupRetentionPeriod = new(true), new(int32(1))
	})
	if err == nil {
		err = s.initialize(ctx, scale)
	}
	if err == nil {
		err = until(ctx, soon, func() error { _, err := s.restorable(ctx); return err })
	}
	if err != nil {
		return err
	}
	b.did(ctx, "the database is loaded and backed up", 90)
	loading, cancel := context.WithCancel(ctx)
	var using sync.WaitGroup
	using.Go(func() { s.useOn(loading) })
	defer func() { cancel(); using.Wait() }()
	return s.watch(ctx)
}

// useOn uses the database until ctx ends. pgbench ends when its sessions are cut.
func (s *site) useOn(ctx context.Context) {
	for ctx.Err() == nil {
		if l, err := s.saturate(ctx, time.Hour); err == nil {
			l.wait()
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// watch asks once a second, and has two failovers meanwhile.
func (s *site) watch(ctx context.Context) error {
	began := time.Now()
	third := s.lag / 3
	strikes := []func(context.Context) error{s.failOver, s.crash}
	var sum []float64 // of a minute
	var newest time.Time
	looks, without := 0, 0
	for ctx.Err() == nil && time.Since(began) < s.lag {
		if len(strikes) > 0 && time.Since(began) > third*time.Duration(3-len(strikes)) {
			if err := strikes[0](ctx); err != nil {
				return err
			}
			strikes = strikes[1:]
		}
		at, err := s.restorable(ctx)
		looks++
		switch {
		case errors.Is(err, errNotRestorable):
			without++ // users know what they were told before
		case err != nil:
			return err
		default:
			newest = at
		}
		if !newest.IsZero() {
			sum = append(sum, time.Since(newest).Seconds())
		}
		if len(sum) == 60 {
			s.addLag(ctx, sum)
			sum = nil
		}
		sleep(ctx, time.Second)
	}
	if len(sum) > 0 {
		s.addLag(ctx, sum)
	}
	s.add(noneRow, 0, most(0.01), "share", float64(without)/float64(max(looks, 1)))
	return ctx.Err()
}

// addLag records the greatest of a minute.
func (s *site) addLag(ctx context.Context, seen []float64) {
	s.add(lagRow, 0, target{Most: 60, Greatest: true}, "s", slices.Max(seen))
	s.note(lagRow, 0, "the greatest of each minute")
	s.did(ctx, fmt.Sprintf("median of this minute %.0f s", median(seen)), float64(len(seen)))
}

var errNotRestorable = errors.New("it cannot be restored yet")

func (s *site) restorable(ctx context.Context) (time.Time, error) {
	i, err := s.Instance(ctx, source)
	if err != nil {
		return time.Time{}, err
	}
	if i.LatestRestorableTime == nil {
		return time.Time{}, errNotRestorable
	}
	return *i.LatestRestorableTime, nil
}

// failOver asks for a failover.
func (s *site) failOver(ctx context.Context) error {
	return until(ctx, soon, func() error {
		in := &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new(source), ForceFailover: new(true)}
		return s.Call(ctx, "RebootDBInstance", in, &rds.RebootDBInstanceResult{})
	})
}

// crash kills PostgreSQL of the primary.
func (s *site) crash(ctx context.Context) error {
	m, err := s.primary(ctx)
	if err != nil {
		return err
	}
	if err := until(ctx, soon, func() error { return s.InSync(ctx, m.Database, 1) }); err != nil {
		return err
	}
	if m, err = s.primary(ctx); err != nil {
		return err
	}
	return m.KillPostgres()
}
