package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"howdah/api/rds"
)

// The size of pgbench's tables: more than shared buffers would be too slow to make each time.
const scale = 50

// busySize is how large the database is that is backed up while it is used, in GB: so large that the
// backup takes some time beside the load.
func (b *bench) busySize() float64 { return min(b.size, 2) }

// before is how long the load is measured before a backup, and again after it.
const before = 15 * time.Second

// during measures what a backup takes from a database that is used as much as it can take.
func (b *bench) during(ctx context.Context) (err error) {
	s, end, err := b.begin(ctx, b.tmp, true)
	if err != nil {
		return err
	}
	defer func() { err = end(err) }()
	err = s.create(ctx, func(in *rds.CreateDBInstanceMessage) { in.MultiAZ = new(true) })
	if err == nil {
		err = s.fill(ctx, b.busySize())
	}
	if err == nil {
		err = s.initialize(ctx, scale)
	}
	if err != nil {
		return err
	}
	b.did(ctx, "the data are loaded", 90+20*b.busySize())
	for n := range b.rounds {
		if err := s.duringOnce(ctx); err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		b.did(ctx, fmt.Sprintf("round %d of %d of a backup under load", n+1, b.rounds), 80)
	}
	return nil
}

const duringRow = "TPS during a first snapshot, with a standby / without"

func (s *site) duringOnce(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	l, err := s.saturate(ctx, time.Hour)
	if err != nil {
		return err
	}
	defer l.stop()
	sleep(ctx, 5*time.Second) // until all sessions are there
	quiet := time.Now()
	sleep(ctx, before)
	began := time.Now()
	took, err := s.snapshot(ctx, first)
	if err != nil {
		return err
	}
	ended := time.Now()
	sleep(ctx, before)
	during, err := l.between(began, ended)
	earlier, err1 := l.between(quiet, began)
	later, err2 := l.between(ended, time.Now())
	if err := errors.Join(err, err1, err2, ctx.Err()); err != nil {
		return err
	}
	l.stop()
	without := (earlier + later) / 2
	s.add(duringRow, 0, least(0.9), "", during/without)
	s.note(duringRow, 0, fmt.Sprintf("last: %.0f against %.0f TPS for %.0f s", during, without, took.Seconds()))
	return s.forget(ctx, first)
}

// archivingRun is how long each run of the load is, with and without an archive.
const archivingRun = 30 * time.Second

const archivingRow = "TPS with archiving / without, at saturation"

// archiving compares two homes in turn: one of them has a repository.
func (b *bench) archiving(ctx context.Context) (err error) {
	var both [2]*site
	for i := range both {
		s, end, err := b.begin(ctx, b.tmp, i == 0)
		if err != nil {
			return err
		}
		defer func() { err = end(err) }()
		if err := s.create(ctx, nil); err != nil {
			return err
		}
		if err := s.initialize(ctx, scale); err != nil {
			return err
		}
		both[i] = s
	}
	b.did(ctx, "two homes are ready", 120)
	for n := range b.rounds {
		var tps [2]float64
		for i := range both {
			i = (i + n) % 2
			if tps[i], err = both[i].saturated(ctx); err != nil {
				return fmt.Errorf("round %d: %w", n+1, err)
			}
		}
		b.add(archivingRow, 0, least(0.95), "", tps[0]/tps[1])
		b.note(archivingRow, 0, fmt.Sprintf("last: %.0f against %.0f TPS", tps[0], tps[1]))
		b.did(ctx, fmt.Sprintf("round %d of %d of archiving", n+1, b.rounds), 2*archivingRun.Seconds())
	}
	return nil
}

// saturated returns the transactions a second of one run.
func (s *site) saturated(ctx context.Context) (float64, error) {
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	l, err := s.saturate(ctx, archivingRun)
	if err != nil {
		return 0, err
	}
	l.wait()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return l.between(began, time.Now())
}
