package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/lab/ack"
	"howdah/internal/testkit/rig"
)

// Names of the instance that is measured, and times around a fault.
const (
	instance = "bench"
	before   = time.Second     // of load before the fault
	after    = 2 * time.Second // of load after the service is back
	patience = 60 * time.Second
)

// subject is a database that faults happen to.
type subject struct {
	create   func(ctx context.Context, r *rig.Rig) error
	database func(ctx context.Context, r *rig.Rig) (string, error) // its resource id
	config   func(ctx context.Context, r *rig.Rig) (*pgx.ConnConfig, error)
}

var (
	multiAZ = subject{
		create:   func(ctx context.Context, r *rig.Rig) error { return r.Create(ctx, instance, true) },
		database: func(ctx context.Context, r *rig.Rig) (string, error) { return r.Database(ctx, instance) },
		config:   func(ctx context.Context, r *rig.Rig) (*pgx.ConnConfig, error) { return r.Config(ctx, instance) },
	}
	auroraCluster = subject{
		create: func(ctx context.Context, r *rig.Rig) error { return r.CreateCluster(ctx, instance, 2) },
		database: func(ctx context.Context, r *rig.Rig) (string, error) {
			c, err := r.Cluster(ctx, instance)
			if err != nil {
				return "", err
			}
			return *c.DbClusterResourceId, nil
		},
		config: func(ctx context.Context, r *rig.Rig) (*pgx.ConnConfig, error) { return r.ClusterConfig(ctx, instance) },
	}
)

// fault is something that happens to the primary.
type fault struct {
	name, target string
	strike       func(ctx context.Context, r *rig.Rig, m rig.Member) error
	mend         func(ctx context.Context, r *rig.Rig, m rig.Member) error
}

var (
	postgresKilled = fault{
		name: "write outage, PostgreSQL of the primary killed (-9)", target: "1",
		strike: func(_ context.Context, _ *rig.Rig, m rig.Member) error { return m.KillPostgres() },
	}
	frozen = fault{
		name: "write outage, host lost: frozen", target: "3",
		strike: func(_ context.Context, _ *rig.Rig, m rig.Member) error { return m.Freeze() },
		mend:   func(_ context.Context, _ *rig.Rig, m rig.Member) error { return m.Thaw() },
	}
	allKilled = fault{
		name: "write outage, host lost: agent, Patroni and PostgreSQL killed", target: "3",
		strike: func(_ context.Context, _ *rig.Rig, m rig.Member) error { return m.Lose() },
		mend: func(_ context.Context, r *rig.Rig, m rig.Member) error {
			return r.StartPart("agent-" + m.ZoneLetter())
		},
	}
	rebooted = fault{
		name: "planned failover: reboot with failover", target: "1",
		strike: func(ctx context.Context, r *rig.Rig, _ rig.Member) error {
			in := &rds.RebootDBInstanceMessage{DBInstanceIdentifier: ptr(instance), ForceFailover: ptr(true)}
			return r.Call(ctx, "RebootDBInstance", in, &rds.RebootDBInstanceResult{})
		},
	}
	clusterFailover = fault{
		name: "planned failover: FailoverDBCluster", target: "1",
		strike: func(ctx context.Context, r *rig.Rig, _ rig.Member) error {
			in := &rds.FailoverDBClusterMessage{DBClusterIdentifier: ptr(instance)}
			return r.Call(ctx, "FailoverDBCluster", in, &rds.FailoverDBClusterResult{})
		},
	}
)

func ptr[T any](v T) *T { return &v }

// failovers measures one fault again and again on one database.
func failovers(s subject, f fault) func(context.Context, *bench, *rig.Rig) error {
	return func(ctx context.Context, b *bench, r *rig.Rig) error {
		if err := s.create(ctx, r); err != nil {
			return err
		}
		for i := range b.runs {
			if err := b.failover(ctx, r, s, f); err != nil {
				return fmt.Errorf("%s, run %d: %w", f.name, i+1, err)
			}
		}
		return nil
	}
}

// failover is one run: load, strike, wait for writes to work again, mend, check
// every row.
func (b *bench) failover(ctx context.Context, r *rig.Rig, s subject, f fault) error {
	database, err := s.database(ctx, r)
	if err != nil {
		return err
	}
	if err := r.Wait(patience, func() error { return r.InSync(ctx, database, 1) }); err != nil {
		return err
	}
	old, err := r.Leader(ctx, database)
	if err != nil {
		return err
	}
	l, stop, err := startLoad(ctx, r, s, fmt.Sprintf("acks_%d", time.Now().UnixNano()))
	if err != nil {
		return err
	}
	defer stop()
	sleep(ctx, before)
	struck := time.Now()
	if err := f.strike(ctx, r, old); err != nil {
		return err
	}
	err = r.Wait(patience, func() error {
		leader, err := r.Leader(ctx, database)
		if err != nil || leader.Name == old.Name {
			return fmt.Errorf("leader is %q: %w", leader.Name, err)
		}
		return writtenSince(l, struck, after)
	})
	if err != nil {
		return err
	}
	stop()
	b.failovers++
	b.add(f.name, f.target, "s", ack.Outage(l.Acks(), struck).Seconds())
	if f.mend != nil {
		if err := f.mend(ctx, r, old); err != nil {
			return err
		}
	}
	return b.check(ctx, l)
}

// startLoad begins to write; stop ends it, and may be called again.
func startLoad(ctx context.Context, r *rig.Rig, s subject, table string) (*ack.Load, func(), error) {
	config, err := s.config(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	l := &ack.Load{Config: config, Table: table, Writers: 4, Pause: 5 * time.Millisecond}
	if err := l.Prepare(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { l.Run(ctx) })
	return l, func() { cancel(); done.Wait() }, nil
}

// writtenSince: every writer has been acknowledged again, for that long.
func writtenSince(l *ack.Load, struck time.Time, long time.Duration) error {
	first, last := map[int]time.Time{}, map[int]time.Time{}
	for _, a := range l.Acks() {
		if a.At.Before(struck) {
			last[a.Writer] = a.At
			continue
		}
		if gap := a.At.Sub(last[a.Writer]); gap > 100*time.Millisecond || first[a.Writer].IsZero() {
			first[a.Writer] = a.At
		}
		last[a.Writer] = a.At
	}
	for w := range l.Writers {
		if first[w].IsZero() || last[w].Sub(first[w]) < long {
			return fmt.Errorf("writer %d does not write steadily again", w)
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
