package soak

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
	"howdah/test/soak/model"
)

// These are the writers of each database, and the names of their sessions.
const (
	writersEach   = 2
	writerPause   = 15 * time.Millisecond
	readerPause   = 100 * time.Millisecond
	writerName    = "soak-writer"
	loginWithin   = 5 * time.Second
	masterUser    = "app"
	firstPassword = rig.Password
)

// database is a database that exists, with its writers and its reader.
type database struct {
	serial int
	id     string // resource id
	// instances are the names of an Aurora cluster's instances, oldest first.
	instances []string
	groups    []func(context.Context) error // deletes what was made for it, last first
	latest    time.Time                     // the newest moment that it was promised to be restorable to

	mu     sync.Mutex
	load   *ack.Load   // nil: nobody writes; guarded by mu
	reader *ack.Reader // guarded by mu
	stop   func()      // ends both; guarded by mu
}

func password(n int) string {
	if n == 0 {
		return firstPassword
	}
	return fmt.Sprintf("soak-password-%d", n)
}

func (s *Soak) database(serial int) *database {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[serial]
}

func (s *Soak) databases() []*database {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*database
	for _, d := range s.live {
		all = append(all, d)
	}
	return all
}

// adopt records a database that was made.
func (s *Soak) adopt(ctx context.Context, m model.Database, instances []string) error {
	d := &database{serial: m.Serial, instances: instances}
	err := s.Rig.Wait(stepWithin, func() (err error) {
		d.id, err = s.resource(ctx, m)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[m.Serial], s.ever[m.Serial] = d, d
	return err
}

func (s *Soak) forget(serial int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, serial)
}

func (s *Soak) resource(ctx context.Context, m model.Database) (string, error) {
	if m.Cluster() {
		c, err := s.Rig.Cluster(ctx, m.Name)
		if err != nil {
			return "", err
		}
		return *c.DbClusterResourceId, nil
	}
	return s.Rig.Database(ctx, m.Name)
}

// config returns how clients reach a database's writer, or a replica.
func (s *Soak) config(ctx context.Context, fleet *model.Fleet, m model.Database) (*pgx.ConnConfig, error) {
	var config *pgx.ConnConfig
	var err error
	if m.Cluster() {
		config, err = s.Rig.ClusterConfig(ctx, m.Name)
	} else {
		config, err = s.Rig.Config(ctx, m.Name)
	}
	if err != nil {
		return nil, err
	}
	config.Password = password(fleet.Root(m).Password)
	return config, nil
}

// writes starts writers and a reader on a database, or leads existing ones to where it is now.
func (s *Soak) writes(ctx context.Context, fleet *model.Fleet, m model.Database) error {
	d := s.database(m.Serial)
	config, err := s.config(ctx, fleet, m)
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = writerName
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.load != nil {
		d.load.Turn(config)
		return nil
	}
	load := &ack.Load{Config: config, Table: fmt.Sprintf("acks_%d", m.Serial), Writers: writersEach, Pause: writerPause}
	if err := s.Rig.Wait(30*time.Second, func() error { return load.Prepare(ctx) }); err != nil {
		return err
	}
	reader := &ack.Reader{Load: load, Pause: readerPause}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { load.Run(ctx) })
	done.Go(func() { reader.Run(ctx) })
	d.load, d.reader, d.stop = load, reader, func() { cancel(); done.Wait() }
	return nil
}

// acks returns all acknowledgements so far.
func (d *database) acks() []ack.Ack {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.load == nil {
		return nil
	}
	return d.load.Acks()
}

// endWriters stops all writers.
func (s *Soak) endWriters() {
	for _, d := range s.databases() {
		d.endWriters()
	}
}

func (d *database) endWriters() {
	d.mu.Lock()
	stop := d.stop
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// query asks one thing of a database through its endpoint.
func query(ctx context.Context, config *pgx.ConnConfig, sql string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience.For(loginWithin))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return "", fmt.Errorf("log in: %w", err)
	}
	defer conn.Close(ctx)
	var text string
	if err := conn.QueryRow(ctx, sql).Scan(&text); err != nil {
		return "", fmt.Errorf("ask %q: %w", sql, err)
	}
	return text, nil
}

// status returns what the API says of a database, and for a cluster also of each of its instances.
func (s *Soak) status(ctx context.Context, m model.Database) (of map[string]string, instances []rds.DBInstance, err error) {
	of = map[string]string{}
	if !m.Cluster() {
		i, err := s.Rig.Instance(ctx, m.Name)
		if err != nil {
			return nil, nil, err
		}
		of[m.Name] = *i.DBInstanceStatus
		return of, []rds.DBInstance{i}, nil
	}
	c, err := s.Rig.Cluster(ctx, m.Name)
	if err != nil {
		return nil, nil, err
	}
	of[m.Name] = *c.Status
	for _, member := range c.DBClusterMembers {
		i, err := s.Rig.Instance(ctx, *member.DBInstanceIdentifier)
		if err != nil {
			return nil, nil, err
		}
		of[*i.DBInstanceIdentifier] = *i.DBInstanceStatus
		instances = append(instances, i)
	}
	return of, instances, nil
}
