package tpcc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"howdah/internal/lab/own"
	"howdah/internal/lab/seats"
	"howdah/internal/lab/tpcc/layout"
	"howdah/internal/lab/tpcc/load"
	"howdah/internal/lab/tpcc/routine"
	"howdah/internal/lab/tpcc/wire"
)

// BuildOptions say which database to build.
type BuildOptions struct {
	Schema     string // small letters, digits and _; DefaultSchema if empty
	Warehouses int    // 1 to MostWarehouses; about 100 MB each
	Workers    int    // sessions that load, 1 to MostWorkers; 0: one for each processor here
	Mode       Mode
	Fillfactor int    // of the tables, 10 to 100; 0 leaves it to the server
	Unlogged   bool   // without WAL: empty after a crash, and not on standbys
	Seed       uint64 // equal seeds give equal data
}

// Bounds of a build.
const (
	MostWarehouses = 100000
	MostWorkers    = 256
)

func (o BuildOptions) checked() (BuildOptions, error) {
	schema, err := checkSchema(o.Schema)
	if err != nil {
		return o, err
	}
	o.Schema = schema
	if err := o.Mode.Check(); err != nil {
		return o, err
	}
	if o.Warehouses < 1 || o.Warehouses > MostWarehouses {
		return o, fmt.Errorf("%w warehouses: %d is not from 1 to %d", ErrOption, o.Warehouses, MostWarehouses)
	}
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), MostWorkers)
	}
	if o.Workers < 1 || o.Workers > MostWorkers {
		return o, fmt.Errorf("%w workers: %d is not from 1 to %d", ErrOption, o.Workers, MostWorkers)
	}
	if o.Fillfactor != 0 && (o.Fillfactor < 10 || o.Fillfactor > 100) {
		return o, fmt.Errorf("%w fillfactor: %d is not from 10 to 100", ErrOption, o.Fillfactor)
	}
	return o, nil
}

// Phase is a part of a build.
type Phase string

const (
	Creating  Phase = "create"  // the schema and its tables, with their keys
	Loading   Phase = "load"    // the rows
	Indexing  Phase = "index"   // the two indexes that come after the rows, and the routines
	Analyzing Phase = "analyze" // the tables
	Finished  Phase = "finished"
)

// Progress says how far a build is.
type Progress struct {
	Phase   Phase
	Rows    int64 // that were sent
	Of      int64 // about how many there will be
	Elapsed time.Duration
}

// Build makes the database of a load, and the lab's schema if it is not there. A database that it made
// before is built anew. What is not the lab's is left alone, with ErrForeign. Other errors are ErrBusy,
// ErrStandby, ErrNoRoom, ErrOption, and those of the server; then the database remains, unfinished, and
// may be built again.
// config must lead to the server itself and not to a pooler. progress, if it is set, is called at each
// phase and each second, never twice at a time.
func Build(ctx context.Context, config *pgx.ConnConfig, o BuildOptions, progress func(Progress)) error {
	o, err := o.checked()
	if err != nil {
		return err
	}
	b := &builder{o: o, config: wire.Prepared(config), began: time.Now(), tell: progress}
	conn, err := pgx.ConnectConfig(ctx, b.config)
	if err != nil {
		return fmt.Errorf("connect to build: %w", err)
	}
	defer closeConn(conn)
	s, err := seats.Ask(ctx, conn)
	if err == nil {
		err = errors.Join(writable(s), fits(s, o.Workers))
	}
	if err != nil {
		return err
	}
	release, err := claim(ctx, conn, o.Schema, false)
	if err != nil {
		return err
	}
	defer release()
	return b.build(ctx, conn)
}

type builder struct {
	o      BuildOptions
	config *pgx.ConnConfig
	began  time.Time
	rows   atomic.Int64

	mu    sync.Mutex
	tell  func(Progress)
	phase Phase // guarded by mu
}

func (b *builder) build(ctx context.Context, conn *pgx.Conn) error {
	about := About{
		Version: version, Mode: b.o.Mode, Warehouses: b.o.Warehouses, Seed: b.o.Seed,
		Unlogged: b.o.Unlogged, Fillfactor: b.o.Fillfactor, Began: b.began.UTC(),
	}
	defer b.report()()
	b.enter(Creating)
	if err := drop(ctx, conn, b.o.Schema); err != nil {
		return err
	}
	if err := b.create(ctx, conn, about); err != nil {
		return err
	}
	b.enter(Loading)
	if err := b.load(ctx); err != nil {
		return err
	}
	b.enter(Indexing)
	if err := b.index(ctx, conn); err != nil {
		return err
	}
	b.enter(Analyzing)
	for _, table := range layout.Tables() {
		if _, err := conn.Exec(ctx, fmt.Sprintf("ANALYZE %s.%s", quoted(b.o.Schema), table.Name)); err != nil {
			return fmt.Errorf("analyze %s: %w", table.Name, err)
		}
	}
	about.Finished = time.Now().UTC()
	comment, err := about.comment(b.o.Schema)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, comment); err != nil {
		return fmt.Errorf("mark the database in schema %s as finished: %w", b.o.Schema, err)
	}
	b.enter(Finished)
	return nil
}

func (b *builder) layout() layout.Options {
	return layout.Options{Schema: quoted(b.o.Schema), Unlogged: b.o.Unlogged, Fillfactor: b.o.Fillfactor}
}

// create makes the tables with their keys, and the marks, at once.
func (b *builder) create(ctx context.Context, conn *pgx.Conn, about About) error {
	comment, err := about.comment(b.o.Schema)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var statements []string
		var there bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", b.o.Schema).Scan(&there); err != nil {
			return err
		}
		if !there {
			schema := quoted(b.o.Schema)
			statements = append(statements, "CREATE SCHEMA "+schema, "COMMENT ON SCHEMA "+schema+" IS '"+own.Mark+"'")
		}
		for _, table := range layout.Tables() {
			statements = append(statements, table.Create(b.layout()))
		}
		for _, sql := range append(statements, comment) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("create the tables in schema %s: %w", b.o.Schema, err)
	}
	return nil
}

// load fills the tables, with as many sessions as there are workers.
func (b *builder) load(ctx context.Context) error {
	data := load.Data{Mode: b.o.Mode, Seed: b.o.Seed, Now: b.began, Rows: &b.rows}
	tasks := data.Tasks(b.o.Warehouses)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(b.o.Workers, len(tasks)) {
		group.Go(func() error {
			conn, err := pgx.ConnectConfig(ctx, b.config)
			if err != nil {
				return fmt.Errorf("connect to load: %w", err)
			}
			defer closeConn(conn)
			for {
				n := int(next.Add(1)) - 1
				if n >= len(tasks) {
					return nil
				}
				if err := b.carryOut(ctx, conn, tasks[n]); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

func (b *builder) carryOut(ctx context.Context, conn *pgx.Conn, task load.Task) error {
	for _, part := range task() {
		table, ok := layout.Named(part.Table)
		if !ok {
			return fmt.Errorf("load %s: there is no such table", part.Table)
		}
		if _, err := conn.PgConn().CopyFrom(ctx, part.Rows, table.Copy(quoted(b.o.Schema))); err != nil {
			return fmt.Errorf("load %s of warehouse %d: %w", part.Table, part.Warehouse, detailed(err))
		}
	}
	return nil
}

// index makes what comes after the rows.
func (b *builder) index(ctx context.Context, conn *pgx.Conn) error {
	for _, table := range layout.Tables() {
		sql := table.CreateAfter(b.layout())
		if sql == "" {
			continue
		}
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("index %s: %w", table.Name, err)
		}
	}
	sql, err := routine.SQL(b.o.Mode, quoted(b.o.Schema))
	if err != nil {
		return err
	}
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("make the routines of schema %s: %w", b.o.Schema, err)
	}
	return nil
}

func (b *builder) enter(phase Phase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.phase = phase
	b.say()
}

// say needs mu.
func (b *builder) say() {
	if b.tell != nil {
		b.tell(Progress{Phase: b.phase, Rows: b.rows.Load(), Of: layout.Rows(b.o.Warehouses), Elapsed: time.Since(b.began)})
	}
}

// report tells each second how far the build is, until the function is called that it returns.
func (b *builder) report() (end func()) {
	ended := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				b.mu.Lock()
				b.say()
				b.mu.Unlock()
			}
		}
	})
	return func() { close(ended); done.Wait() }
}
