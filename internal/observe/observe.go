// Package observe watches one PostgreSQL server: what its sessions wait for, its counters, and,
// where it runs on this machine, its control group, its processes and its disks.
//
// Invariants:
//   - It uses one connection, and writes nothing.
//   - What could not be read is absent from a row. It is never a zero.
//   - A row says how long it is by a clock that does not step.
//   - It asks less often when the server answers late.
//
// The parts: series has rows and their sums, wait the classes of waits, counter what SQL tells,
// machine what the kernel tells, environment what a report says of the server and its machine.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/observe/counter"
	"howdah/internal/observe/machine"
	"howdah/internal/observe/series"
)

const (
	// Application is what the connection is called, unless Config says otherwise.
	Application = "howdah-lab"
	// statementTimeout bounds what the server spends on one statement.
	statementTimeout = 500 * time.Millisecond
	// answerTimeout bounds how long one sample may take, and a connection to be made.
	answerTimeout = 2 * time.Second
	// usual is how long a row is, and how often sessions are sampled.
	usual = time.Second
)

// Config says what to observe.
type Config struct {
	// Conn is the server and the login, which should be a member of pg_monitor. Its database is the
	// one whose counters are read. Open does not change it.
	Conn *pgx.ConnConfig
	// Application is the connection's application_name; "" stands for Application.
	Application string
	// Load is the application_name of the sessions that make the load, in the database of Conn. Others are
	// counted apart, as foreign; "": all sessions are the load's.
	Load string
	// Row is how long a row is; 0 is a second.
	Row time.Duration
	// Sample is how often sessions are sampled; 0 is a second. It is Row at most.
	Sample time.Duration
	// System is where the machine is read from; the zero value is this machine.
	System machine.System
	// Log gets what goes wrong meanwhile; nil is nothing.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Application = cmp.Or(c.Application, Application)
	c.Row = cmp.Or(c.Row, usual)
	c.Sample = min(cmp.Or(c.Sample, usual), c.Row)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("component", "observe")
	return c
}

// Processes are those whose CPU is told apart from the rest of the machine. They count with all
// that descend from them.
type Processes struct {
	Generator []int // the load generator
	// Own says that this process itself is the load generator, without those that it started.
	Own bool
	// Known are others that belong to the test, such as standbys and poolers. What the server's own CPU
	// has of them is not counted twice.
	Known []int
}

// Observer observes one server. Run and Close are for one goroutine. Other methods may be called at
// any time.
type Observer struct {
	config Config
	pace   pace

	conn   *pgx.Conn
	reader *counter.Reader
	server *machine.Server // nil if the server is not on this machine
	self   machine.Tree
	own    machine.Tree // the connection's backend
	load   counter.Load
	rates  series.Tracker
	trip   time.Duration // of the quickest empty statement of the row; 0: there was none
	slow   time.Duration // the slowest sample of the row
	row    time.Time     // when the row began

	mu      sync.Mutex
	watched watched  // guarded by mu
	missing []string // guarded by mu
	local   bool     // guarded by mu
}

// watched has trees of Processes.
type watched struct {
	generator, known machine.Tree
	own              bool
}

// Open connects to the server, and finds out what of it can be read. It fails if the server does
// not answer, or is older than counter.Oldest.
func Open(ctx context.Context, config Config) (*Observer, error) {
	config = config.withDefaults()
	o := &Observer{config: config, pace: pace{asked: config.Sample}}
	o.self = config.System.TreeOf(os.Getpid())
	o.self.Alone = true
	if err := o.connect(ctx); err != nil {
		return nil, err
	}
	return o, nil
}

// Watch says whose CPU to tell apart from now on. It replaces what was watched before.
func (o *Observer) Watch(p Processes) {
	w := watched{generator: o.config.System.TreeOf(p.Generator...), known: o.config.System.TreeOf(p.Known...), own: p.Own}
	if p.Own {
		w.generator = o.self
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watched = w
}

// Missing says in words what cannot be read of the server that answered last.
func (o *Observer) Missing() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.missing
}

// Local reports whether the server that answered last runs on this machine, as far as we see it.
func (o *Observer) Local() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.local
}

// Close ends the connection. Call it after Run.
func (o *Observer) Close() {
	if o.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		defer cancel()
		_ = o.conn.Close(ctx) // it ends one way or the other
	}
	o.conn, o.reader = nil, nil
}

// dial makes a connection that cannot keep a server busy for long.
func dial(ctx context.Context, config Config) (*pgx.Conn, error) {
	c := config.Conn.Copy()
	if c.RuntimeParams == nil {
		c.RuntimeParams = map[string]string{}
	}
	c.RuntimeParams["application_name"] = config.Application
	c.RuntimeParams["statement_timeout"] = strconv.FormatInt(statementTimeout.Milliseconds(), 10)
	if c.ConnectTimeout == 0 || c.ConnectTimeout > answerTimeout {
		c.ConnectTimeout = answerTimeout
	}
	return pgx.ConnectConfig(ctx, c)
}

// connect connects, and finds the server on this machine if it is there.
func (o *Observer) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	conn, err := dial(ctx, o.config)
	if err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	reader, err := counter.NewReader(ctx, conn)
	if err != nil {
		return errors.Join(fmt.Errorf("observe: %w", err), conn.Close(ctx))
	}
	reader.Load = o.config.Load
	o.conn, o.reader = conn, reader
	missing := reader.Missing()
	o.server, o.own = nil, machine.Tree{}
	postmaster, found := o.config.System.FindPostmaster(reader.Who.BackendPID, reader.Who.Backend)
	if found {
		o.own = o.config.System.TreeOf(reader.Who.BackendPID)
		o.server, err = o.config.System.Server(postmaster)
		if err != nil {
			missing = append(missing, fmt.Sprintf("processes: %v", err))
		} else {
			missing = append(missing, o.server.Missing...)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missing, o.local = missing, found
	return nil
}

// Counters reads all that SQL tells once, as it is: it counts since whenever the server began to. It
// is not for while Run runs. Without a connection it connects first.
func (o *Observer) Counters(ctx context.Context) (series.Reading, error) {
	if o.conn == nil {
		if err := o.connect(ctx); err != nil {
			return series.Reading{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reading, err := o.reader.Read(ctx)
	o.lose(err)
	return reading, err
}

// Run samples until ctx ends, and calls each with every row, from its own goroutine. It returns nil
// then. A server that goes away is tried again, while the rows have what the machine tells. The
// first row begins with Run, and has no rates of what was not read before.
func (o *Observer) Run(ctx context.Context, each func(series.Row)) error {
	o.read(ctx, map[string]float64{}) // from here on things are counted
	o.row = time.Now()
	timer := time.NewTimer(o.pace.every())
	defer timer.Stop()
	due := o.row.Add(o.config.Row)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		began := time.Now()
		o.sample(ctx)
		if !began.Before(due.Add(-o.config.Sample / 2)) {
			if row, ok := o.finish(ctx); ok {
				each(row)
			}
			due = began.Add(o.config.Row)
		}
		timer.Reset(max(0, o.pace.every()-time.Since(began)))
	}
}

// sample looks once at all sessions. It connects first if there is no connection.
func (o *Observer) sample(ctx context.Context) {
	if o.conn == nil {
		if err := o.connect(ctx); err != nil {
			o.config.Log.Debug("the server does not answer", "error", err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	began := time.Now()
	err := o.conn.Ping(ctx)
	if trip := time.Since(began); err == nil {
		if o.trip == 0 || trip < o.trip {
			o.trip = trip
		}
		err = o.reader.Sessions(ctx, &o.load)
	}
	o.slow = max(o.slow, time.Since(began))
	o.pace.took(time.Since(began))
	o.lose(err)
}

// lose gives a connection up that does not work any more.
func (o *Observer) lose(err error) {
	if err == nil || o.conn == nil || !o.conn.IsClosed() {
		return
	}
	o.config.Log.Info("lost the server", "error", err)
	o.Close()
	o.server = nil
}

// finish makes a row of all that was seen since the last one. It returns false if ctx ended
// meanwhile.
func (o *Observer) finish(ctx context.Context) (series.Row, bool) {
	values := map[string]float64{}
	o.load.Take(values)
	o.read(ctx, values)
	values[series.ObserverPace] = o.pace.every().Seconds()
	values[series.ObserverConnected] = 0
	if o.conn != nil {
		values[series.ObserverConnected] = 1
		values[series.ObserverSample] = ms(o.slow)
		if o.trip > 0 {
			values[series.ObserverRoundTrip] = ms(o.trip)
		}
	}
	now := time.Now()
	length := now.Sub(o.row)
	values[series.ObserverClockStep] = ms(now.Round(0).Sub(o.row.Round(0)) - length)
	series.Derive(values)
	o.row, o.slow, o.trip = now, 0, 0
	return series.Row{At: now.UnixMilli(), Seconds: length.Seconds(), Values: values}, ctx.Err() == nil
}

// read reads all counters and gauges into values: those of the machine first, as they never wait.
func (o *Observer) read(ctx context.Context, values map[string]float64) {
	o.readMachine(values)
	if o.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	began := time.Now()
	reading, err := o.reader.Read(ctx)
	o.rates.Add(reading, values)
	o.slow = max(o.slow, time.Since(began))
	o.pace.took(time.Since(began))
	o.lose(err)
}

func (o *Observer) readMachine(values map[string]float64) {
	system := o.config.System
	if o.server != nil {
		if reading, err := o.server.Read(); err == nil {
			o.rates.Add(reading, values)
			busiest(values)
		}
		if family, ok := system.CPU(series.ObserverBackendCPU, o.own); ok {
			o.rates.Add(series.Reading{Families: map[string]series.Family{"backend": family}}, values)
		}
	}
	o.rates.Add(system.Machine(), values)
	o.mu.Lock()
	w := o.watched
	o.mu.Unlock()
	if o.server != nil && len(w.known.Roots) > 0 {
		w.known.Except = o.server.Own()
	}
	for _, each := range []struct {
		column string
		tree   machine.Tree
	}{{series.GeneratorCPU, w.generator}, {series.KnownCPU, w.known}, {series.ObserverCPU, o.self}} {
		if each.column == series.ObserverCPU && (w.own || w.generator.Has(os.Getpid()) || w.known.Has(os.Getpid())) {
			continue // it is counted there
		}
		if family, ok := system.CPU(each.column, each.tree); ok {
			o.rates.Add(series.Reading{Families: map[string]series.Family{each.column: family}}, values)
		}
	}
}

// busiest: of several devices the one that has most to do limits the server.
func busiest(values map[string]float64) {
	most, found := 0.0, false
	for name, value := range values {
		if strings.HasPrefix(name, series.DeviceBusy+".") {
			most, found = max(most, value), true
		}
	}
	if found {
		values[series.DeviceBusy] = most
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
