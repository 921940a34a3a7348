package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/rig"
)

// These are names of the instance that is measured, and times around a fault.
const (
	instance = "bench"
	before   = time.Second     // of load before the fault
	after    = 2 * time.Second // of load after the service is back
	patience = 60 * time.Second
)

// subject is a database that faults happen to.
type subject struct {
	shape    string
	standbys int // in sync, before a fault
	create   func(ctx context.Context, r *rig.Rig) error
	database func(ctx context.Context, r *rig.Rig) (string, error) // its resource id
	config   func(ctx context.Context, r *rig.Rig) (*pgx.ConnConfig, error)
}

var (
	multiAZ = subject{
		shape: "Multi-AZ", standbys: 1,
		create:   func(ctx context.Context, r *rig.Rig) error { return r.Create(ctx, instance, true) },
		database: func(ctx context.Context, r *rig.Rig) (string, error) { return r.Database(ctx, instance) },
		config:   func(ctx context.Context, r *rig.Rig) (*pgx.ConnConfig, error) { return r.Config(ctx, instance) },
	}
	warm = subject{
		shape: "Multi-AZ, warm standby", standbys: 1,
		create: func(ctx context.Context, r *rig.Rig) error {
			if err := multiAZ.create(ctx, r); err != nil {
				return err
			}
			return r.Tag(ctx, instance, "howdah:warm-standby", "true")
		},
		database: multiAZ.database, config: multiAZ.config,
	}
	cluster = subject{
		shape: "cluster of 3", standbys: 2,
		create: func(ctx context.Context, r *rig.Rig) error { return r.CreateCluster(ctx, instance, 3) },
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

// healthy returns nil if all standbys are in sync. /sync alone does not tell: right after a
// failover it has the standbys of the previous primary, and one of them may be the old primary,
// which does not stream yet.
func (s subject) healthy(ctx context.Context, r *rig.Rig, database string) error {
	if err := r.InSync(ctx, database, s.standbys); err != nil {
		return err
	}
	config, err := s.config(ctx, r)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var streaming int
	const query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')"
	if err := conn.QueryRow(ctx, query).Scan(&streaming); err != nil {
		return err
	}
	if streaming < s.standbys {
		return fmt.Errorf("%d of %d standbys are in sync", streaming, s.standbys)
	}
	return nil
}

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
	if err := r.Wait(patience, func() error { return s.healthy(ctx, r, database) }); err != nil {
		return err
	}
	hit, err := s.victims(ctx, r, database)
	if err != nil {
		return err
	}
	known := len(mustFailovers(ctx, r, database))
	l, stop, err := startLoad(ctx, r, s, fmt.Sprintf("acks_%d", time.Now().UnixNano()))
	if err != nil {
		return err
	}
	defer stop()
	sleep(ctx, before)
	struck := time.Now()
	if err := f.strike(ctx, r, hit); err != nil {
		return err
	}
	err = r.Wait(patience, func() error {
		leader, err := r.Leader(ctx, database)
		if err != nil || !f.either && (leader.Name == hit.primary.Name) != f.keeps {
			return fmt.Errorf("leader is %q: %w", leader.Name, err)
		}
		return writtenSince(l, struck, after)
	})
	if err != nil {
		return err
	}
	stop()
	outage := ack.Outage(l.Acks(), struck)
	b.add(s.shape+": "+f.name, f.target, "s", outage.Seconds())
	if !f.keeps && !f.either {
		b.failovers++
		b.explain(s.shape+": "+f.name, phase(struck, struck.Add(outage), newFailover(ctx, r, database, known)))
	}
	if f.mend != nil {
		if err := f.mend(ctx, r, hit); err != nil {
			return err
		}
	}
	return b.check(ctx, l)
}

// newFailover waits for the post-mortem of the failover that was the last, as long as one takes to
// be complete. If it is missing, the run still counts.
func newFailover(ctx context.Context, r *rig.Rig, database string, known int) (last postmortem.Record) {
	_ = r.Wait(10*time.Second, func() error {
		all := mustFailovers(ctx, r, database)
		if len(all) <= known || all[len(all)-1].FirstWrite.IsZero() {
			return errors.New("it is not complete")
		}
		last = all[len(all)-1]
		return nil
	})
	return last
}

// victims returns the members of a subject that a fault may hit now.
func (s subject) victims(ctx context.Context, r *rig.Rig, database string) (victims, error) {
	l, err := fence.Read(ctx, r.Store.Client, database)
	if err != nil {
		return victims{}, err
	}
	all, err := r.Members(ctx, database)
	if err != nil {
		return victims{}, err
	}
	var hit victims
	for _, m := range all {
		switch {
		case m.Name == l.Leader:
			hit.primary = m
		case len(l.Sync.Standbys) > 0 && m.Name == l.Sync.Standbys[0]:
			hit.standby = m
		}
	}
	if hit.primary.Name == "" || hit.standby.Name == "" {
		return hit, fmt.Errorf("primary %q, in sync %v", l.Leader, l.Sync.Standbys)
	}
	return hit, nil
}

// startLoad begins to write. stop ends that, and may be called again.
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

// writtenSince returns nil once every writer has been acknowledged again, for that long.
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
