package soak

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/testkit/ack"
	"howdah/test/soak/model"
)

const (
	// settleWithin is the time for all that a round began, and all that its faults left behind.
	settleWithin = 90 * time.Second
	// syncWithin is how long after a database is available its standbys may need to be in sync,
	// with all hosts alive.
	syncWithin = 20 * time.Second
	// followWithin is how far a replica may be behind.
	followWithin = 20 * time.Second
)

// settle waits until everything is as the model says, and writers write everywhere.
func (s *Soak) settle(ctx context.Context, fleet *model.Fleet) error {
	for _, name := range fleet.Names() {
		m := fleet.Databases[name]
		if err := s.await(settleWithin, name+" to be as asked for", func() error { return s.isAsked(ctx, m) }); err != nil {
			return failed("a database does not become what was asked for", fmt.Errorf("%s: %w", name, err))
		}
		if m.Stopped {
			continue
		}
		if err := s.works(ctx, fleet, m); err != nil {
			return failed("an available database does not work", fmt.Errorf("%s: %w", name, err))
		}
	}
	for _, name := range fleet.Names() {
		m := fleet.Databases[name]
		if err := s.await(settleWithin, name+" to say what can be restored", func() error { return s.keepsPromises(ctx, m) }); err != nil {
			return failed("LatestRestorableTime went backward", fmt.Errorf("%s: %w", name, err))
		}
		if m.Standbys() > 0 {
			id := s.database(m.Serial).id
			if err := s.await(syncWithin, name+" to be in sync", func() error { return s.Rig.InSync(ctx, id, m.Standbys()) }); err != nil {
				return failed("a standby is not in sync", fmt.Errorf("%s: %w", name, err))
			}
		}
		if m.Follows() && !m.Stopped {
			if err := s.follows(ctx, fleet, m); err != nil {
				return failed("a replica does not follow", fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return failed("status tells of problems", s.await(settleWithin, "status to say that all is well", func() error { return s.allIsWell(ctx) }))
}

// slowWait is how long a wait must be to be told of.
const slowWait = 6 * time.Second

// await waits, and tells what it waited for if that took long.
func (s *Soak) await(within time.Duration, what string, check func() error) error {
	began := time.Now()
	var last error
	err := s.Rig.Wait(within, func() error {
		err := check()
		if err != nil {
			last = err
		}
		return err
	})
	if waited := time.Since(began); err == nil && waited > slowWait {
		s.Log("  waited %.1f s for %s, at last as %v", waited.Seconds(), what, last)
	}
	return err
}

// isAsked returns nil once a database is what was asked for, as the API says.
func (s *Soak) isAsked(ctx context.Context, m model.Database) error {
	of, instances, err := s.status(ctx, m)
	if err != nil {
		return err
	}
	want := plan.Available
	if m.Stopped {
		want = plan.StoppedWord
	}
	for name, status := range of {
		if status != want {
			return fmt.Errorf("%s is %s", name, status)
		}
	}
	switch m.Kind {
	case model.Single, model.MultiAZ:
		i := instances[0]
		multi := m.Kind == model.MultiAZ
		got := fmt.Sprint(*i.DBInstanceClass, *i.AllocatedStorage, *i.MultiAZ, i.Endpoint != nil && int(*i.Endpoint.Port) == m.Port, *i.BackupRetentionPeriod)
		if want := fmt.Sprint(m.Class, m.Storage, multi, true, m.Days); got != want {
			return fmt.Errorf("class, storage, Multi-AZ, port right, retention: %s, want %s", got, want)
		}
	case model.Three, model.Aurora:
		if len(instances) != m.Members() {
			return fmt.Errorf("%d instances, want %d", len(instances), m.Members())
		}
	}
	return nil
}

// works checks a login through the endpoint, writes if there may be some, and the settings.
func (s *Soak) works(ctx context.Context, fleet *model.Fleet, m model.Database) error {
	config, err := s.config(ctx, fleet, m)
	if err != nil {
		return err
	}
	if err := s.Rig.Wait(loginWithin, func() error {
		text, err := query(ctx, config, "SELECT pg_is_in_recovery()::text")
		if want := strconv.FormatBool(m.Follows()); err == nil && text != want {
			err = fmt.Errorf("in recovery: %s, want %s", text, want)
		}
		return err
	}); err != nil {
		return err
	}
	if !m.Follows() {
		if err := s.writes(ctx, fleet, m); err != nil {
			return err
		}
		if err := s.Rig.Wait(loginWithin, s.database(m.Serial).writing(time.Now())); err != nil {
			return err
		}
	}
	return s.Rig.Wait(loginWithin, func() error {
		for name, want := range settings(m) {
			if got, err := query(ctx, config, "SELECT setting FROM pg_settings WHERE name = '"+name+"'"); err != nil || got != want {
				return errors.Join(err, fmt.Errorf("%s is %s, want %s", name, got, want))
			}
		}
		return nil
	})
}

// settings returns the settings that must be in force.
func settings(m model.Database) map[string]string {
	all := map[string]string{}
	if m.Memory > 0 {
		all["work_mem"] = strconv.Itoa(m.Memory)
	}
	if m.Connections > 0 {
		all["max_connections"] = strconv.Itoa(m.Connections)
	}
	return all
}

// writing returns a check that returns nil once all writers have been acknowledged after a moment.
func (d *database) writing(from time.Time) func() error {
	return func() error {
		seen := map[int]bool{}
		acks := d.acks()
		for _, a := range acks[max(0, len(acks)-1000):] {
			if a.Began.After(from) {
				seen[a.Writer] = true
			}
		}
		if len(seen) < writersEach {
			return fmt.Errorf("%d of %d writers are acknowledged: %v", len(seen), writersEach, last(d.load.Errors(), 3))
		}
		return nil
	}
}

// follows checks that what was acknowledged in the root of its cascade comes to a replica.
func (s *Soak) follows(ctx context.Context, fleet *model.Fleet, m model.Database) error {
	root := fleet.Root(m)
	if root.Stopped {
		return nil
	}
	acks := s.database(root.Serial).acks()
	config, err := s.config(ctx, fleet, m)
	if err != nil || len(acks) == 0 {
		return err
	}
	newest := acks[len(acks)-1]
	sql := fmt.Sprintf("SELECT count(*)::text FROM acks_%d WHERE writer = %d AND seq = %d", root.Serial, newest.Writer, newest.Seq)
	return s.await(followWithin, m.Name+" to follow", func() error {
		text, err := query(ctx, config, sql)
		if err == nil && text != "1" {
			err = fmt.Errorf("row %d of writer %d, acknowledged at %s, has not come", newest.Seq, newest.Writer, newest.At.Format(time.TimeOnly))
		}
		return err
	})
}

// nothingLost looks for all rows that were acknowledged or read.
func (s *Soak) nothingLost(ctx context.Context, fleet *model.Fleet) error {
	for _, m := range fleet.Databases {
		if m.Stopped || m.Follows() {
			continue
		}
		if err := s.rowsOf(ctx, s.database(m.Serial)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Soak) rowsOf(ctx context.Context, d *database) error {
	d.mu.Lock()
	load, reader := d.load, d.reader
	d.mu.Unlock()
	if load == nil {
		return nil
	}
	acks := load.Acks()
	var missing []ack.Ack
	var gone []ack.Row
	err := s.Rig.Wait(settleWithin, func() (err error) {
		if missing, err = ack.Missing(ctx, load.Target(), load.Table, acks); err != nil {
			return err
		}
		gone, err = reader.Vanished(ctx, load.Target())
		return err
	})
	reads, stale := reader.Found()
	s.Figures.rows(d.serial, len(acks), len(missing), reads)
	switch {
	case err != nil:
		return failed("the rows cannot be read", fmt.Errorf("%s: %w", load.Table, err))
	case len(missing) > 0:
		return failed("acknowledged rows are lost", fmt.Errorf("%d of %d of %s, the first %+v, the last %+v", len(missing), len(acks), load.Table, missing[0], missing[len(missing)-1]))
	case len(stale) > 0:
		return failed("a read was stale: it does not have a row acknowledged before", fmt.Errorf("%d of %d reads of %s, the first %+v", len(stale), reads, load.Table, stale[0]))
	case len(gone) > 0:
		return failed("rows vanished that were read, though never acknowledged", fmt.Errorf("%d of %s, the first %+v", len(gone), load.Table, gone[0]))
	}
	return nil
}

func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }
