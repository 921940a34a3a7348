package main

import (
	"context"
	"fmt"
	"time"

	"howdah/api/rds"
)

// files measures snapshots, restores and drills of a database of a size.
func (b *bench) files(ctx context.Context, size float64, rounds int) (err error) {
	s, end, err := b.begin(ctx, b.tmp, true)
	if err != nil {
		return err
	}
	defer func() { err = end(err) }()
	if err := s.create(ctx, nil); err != nil {
		return err
	}
	if err := s.fill(ctx, size); err != nil {
		return err
	}
	f := &files{site: s, size: size}
	whole := filesWeight(size, rounds)
	load := 30 + 25*size
	b.did(ctx, fmt.Sprintf("%g GB are loaded", size), load)
	for n := range rounds {
		if err := f.round(ctx, n); err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		b.did(ctx, fmt.Sprintf("round %d of %d with %g GB", n+1, rounds, size), (whole-load)/float64(rounds))
	}
	return nil
}

// files is a database whose backups are measured.
type files struct {
	*site
	size float64
}

const (
	first  = "first"
	second = "second"
)

// round makes a first snapshot and a second one, restores and tries it, and removes all that. What
// is compared goes first in turn.
func (f *files) round(ctx context.Context, n int) error {
	var whole, plain time.Duration
	err := inTurn(n,
		func() (err error) {
			whole, err = f.timed(ctx, func() (time.Duration, error) { return f.snapshot(ctx, first) })
			return err
		},
		func() (err error) {
			if f.chosen("snapshot,growth") {
				plain, err = f.timed(ctx, func() (time.Duration, error) { return f.baseBackup(ctx) })
			}
			return err
		})
	if err != nil {
		return err
	}
	backup, err := f.made(ctx, first)
	if err != nil {
		return err
	}
	if err := f.touch(ctx, f.size); err != nil {
		return err
	}
	again, err := f.timed(ctx, func() (time.Duration, error) { return f.snapshot(ctx, second) })
	if err != nil {
		return err
	}
	if f.chosen("snapshot,growth") {
		f.add("first snapshot", f.size, target{}, "s", whole.Seconds())
		f.note("first snapshot", f.size, engineTook(backup, whole))
		f.add("pg_basebackup to the same disk", f.size, target{}, "s", plain.Seconds())
		f.add("first snapshot / pg_basebackup", f.size, most(1), "", whole.Seconds()/plain.Seconds())
		f.add("its size in the repository / in the database", f.size, most(0.5), "", float64(backup.Stored)/float64(backup.Size))
		f.note("its size in the repository / in the database", f.size, fmt.Sprintf("last: %.0f of %.0f MB", float64(backup.Stored)/1e6, float64(backup.Size)/1e6))
		small, err := f.made(ctx, second)
		if err != nil {
			return err
		}
		f.add("second snapshot, 1 % of the pages changed", f.size, target{}, "s", again.Seconds())
		f.note("second snapshot, 1 % of the pages changed", f.size, engineTook(small, again)+fmt.Sprintf("; %.0f MB", float64(small.Stored)/1e6))
		f.add("second snapshot / first", f.size, most(0.2), "", again.Seconds()/whole.Seconds())
	}
	if err := f.restores(ctx, n); err != nil {
		return err
	}
	return f.forget(ctx, second, first)
}

// restores restores the second snapshot, and tries its backup.
func (f *files) restores(ctx context.Context, n int) error {
	if !f.chosen("restore,drill,growth") {
		return nil
	}
	var restored, copied, tried time.Duration
	err := inTurn(n,
		func() (err error) {
			restored, err = f.timed(ctx, func() (time.Duration, error) { return f.restore(ctx) })
			return err
		},
		func() (err error) {
			if f.chosen("restore,growth") {
				copied, err = f.timed(ctx, func() (time.Duration, error) { return f.copyFiles(ctx) })
			}
			return err
		},
		func() (err error) {
			if f.chosen("drill,growth") {
				tried, err = f.timed(ctx, func() (time.Duration, error) { return f.drill(ctx) })
			}
			return err
		})
	if err != nil {
		return err
	}
	f.add("restore of a snapshot to available", f.size, target{}, "s", restored.Seconds())
	if copied > 0 {
		f.add("cp -a of the same files, with sync", f.size, target{}, "s", copied.Seconds())
		f.add("restore / cp -a", f.size, most(1.5), "", restored.Seconds()/copied.Seconds())
	}
	if tried > 0 {
		f.add("drill", f.size, target{}, "s", tried.Seconds())
		f.add("drill / restore", f.size, most(1.3), "", tried.Seconds()/restored.Seconds())
	}
	return nil
}

// timed measures on a machine that has nothing left to write.
func (f *files) timed(ctx context.Context, do func() (time.Duration, error)) (time.Duration, error) {
	if err := f.settle(ctx); err != nil {
		return 0, err
	}
	return do()
}

// inTurn does all of these, each time with another one first.
func inTurn(n int, all ...func() error) error {
	for i := range all {
		if err := all[(n+i)%len(all)](); err != nil {
			return err
		}
	}
	return nil
}

const copyName = "restored"

// restore restores the second snapshot, returns how long it took to be available, and deletes it.
func (f *files) restore(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	in := &rds.RestoreDBInstanceFromDBSnapshotMessage{DBInstanceIdentifier: new(copyName), DBSnapshotIdentifier: new(second), MultiAZ: new(false)}
	err := f.Call(ctx, "RestoreDBInstanceFromDBSnapshot", in, &rds.RestoreDBInstanceFromDBSnapshotResult{})
	if err == nil {
		err = f.available(ctx, copyName)
	}
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, f.drop(ctx, copyName)
}

// drill tries the newest backup, and returns how long the user waits for what was found.
func (f *files) drill(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := f.howdah(ctx, "backup", "drill", source)
	return time.Since(began), err
}
