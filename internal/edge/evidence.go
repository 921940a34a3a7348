package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"howdah/internal/model/route"
	"howdah/internal/state"
)

const (
	// believedFor is how long one piece of evidence lets an edge lead writers.
	believedFor = 3 * time.Second
	// hearEvery is how often etcd is asked. lookEvery is how often the edge checks whether etcd is
	// silent.
	hearEvery = 500 * time.Millisecond
	lookEvery = 250 * time.Millisecond
	// quietAfter is how long etcd must be silent before the primaries themselves are asked.
	quietAfter = 1500 * time.Millisecond
	// proveEvery is how often each primary is asked then. With many primaries each is asked less
	// often, so that there is at most one question in proveApart.
	proveEvery = time.Second
	proveApart = 10 * time.Millisecond
)

// evidence says why this edge may lead writers to the primaries that it knows. A primary that was
// replaced may not know it, and neither may an edge beside it. Two things are evidence for a
// primary, each for believedFor. Either etcd answered, and the edge knows what etcd knew. Or the
// primary acknowledged a commit: a primary that was replaced cannot do that, because its standbys
// were cut off before (docs/design/availability.md). So a primary that serves loses nothing if only
// etcd is silent.
//
// Times are of a clock that goes on while the machine sleeps. An edge that stood still finds its
// evidence expired.
type evidence struct {
	mu     sync.Mutex
	heard  time.Duration            // guarded by mu: etcd's last answer was asked for then
	proved map[string]time.Duration // guarded by mu; by database: until when its primary is believed
	seats  map[string]primary       // guarded by mu; by database: who is to be asked
}

// primary is a member that served as primary last.
type primary struct {
	route route.Route
	name  string
}

// clock returns the time since the machine was started, including sleep.
func clock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("edge: no clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}

func newEvidence() *evidence {
	return &evidence{heard: -time.Hour, proved: map[string]time.Duration{}, seats: map[string]primary{}}
}

// holds reports whether writers of a database may be led to the primary that is known.
func (v *evidence) holds(database string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := clock()
	return now-v.heard < believedFor || now < v.proved[database]
}

func (v *evidence) hear(asked time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard = max(v.heard, asked)
}

func (v *evidence) silence() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return clock() - v.heard
}

func (v *evidence) believe(database string, until time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.proved[database] = until
}

// know sets which primaries are asked if etcd falls silent.
func (v *evidence) know(seats map[string]primary) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seats = seats
}

// credible reports whether the edge may act on what it knows about a route's leader. A database
// that follows another one has no writers, and its leader cannot prove anything.
func (e *Edge) credible(r route.Route) bool { return r.Follows || e.evidence.holds(r.Database) }

// hear asks etcd until ctx ends. It notes when an answer of etcd last showed that the edge is up to
// date.
func (e *Edge) hear(ctx context.Context) {
	for before := false; ctx.Err() == nil; {
		asked := clock()
		if err := e.upToDate(ctx); err == nil {
			if silence := e.evidence.silence(); before && silence >= believedFor {
				e.Log.Info("etcd is heard again", "silent_for", silence.Round(time.Millisecond).String())
			}
			before = true
			e.evidence.hear(asked)
		} else if ctx.Err() == nil {
			e.Log.Debug("ask etcd", "error", err)
		}
		wait(ctx, hearEvery)
	}
}

// upToDate returns nil once a majority of etcd has answered and the mirror has all that etcd knew
// then.
func (e *Edge) upToDate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := e.Store.Client.Get(ctx, state.MetaRoot, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	return e.cache.WaitRevision(ctx, answer.Header.Revision)
}

// keepVigil asks the primaries themselves whenever etcd is silent, until ctx ends.
func (e *Edge) keepVigil(ctx context.Context) {
	for ctx.Err() == nil {
		wait(ctx, lookEvery)
		if e.evidence.silence() >= quietAfter && ctx.Err() == nil {
			e.askPrimaries(ctx)
		}
	}
}

// askPrimaries asks the primaries until etcd is heard again or ctx ends.
func (e *Edge) askPrimaries(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	seats := e.evidence.begin()
	every := max(proveEvery, time.Duration(len(seats))*proveApart)
	delay := time.Duration(0)
	for database, p := range seats {
		all.Go(func() { e.askPrimary(ctx, database, p, delay, every) })
		delay += proveApart
	}
	for ctx.Err() == nil && e.evidence.silence() >= quietAfter {
		e.nudge() // evidence ends by time alone
		wait(ctx, lookEvery)
	}
	e.nudge()
}

// begin returns the primaries to ask. It believes each of them until its turn has come, unless the
// edge noticed the silence late, as it does if it stood still.
func (v *evidence) begin() map[string]primary {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := clock()
	if now-v.heard < believedFor {
		for database := range v.seats {
			v.proved[database] = now + time.Duration(len(v.seats))*proveApart + 2*askTimeout
		}
	}
	return v.seats
}

// errLate says that a commit took longer than a commit that counts as proof may take.
var errLate = errors.New("a commit was not acknowledged in time")

// askPrimary has one primary commit again and again until ctx ends.
func (e *Edge) askPrimary(ctx context.Context, database string, p primary, delay, every time.Duration) {
	conclude := func(until time.Duration, err error) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			e.Log.Info("no evidence of a primary", "database", database, "member", p.name, "error", err)
		}
		e.evidence.believe(database, until)
		e.nudge()
	}
	for wait(ctx, delay); ctx.Err() == nil; wait(ctx, every) {
		asked, err := e.asker(ctx, p)
		if err != nil {
			conclude(0, err)
			continue
		}
		for err == nil {
			began := clock()
			late := time.AfterFunc(askTimeout, func() { conclude(0, errLate) })
			// It waits for the commit however long that takes, and begins no other one: a server
			// keeps each session that waits for its standby.
			err = asked.commit(ctx)
			if inTime := late.Stop(); err == nil && inTime {
				conclude(began+every+2*askTimeout, nil)
			} else if err != nil {
				conclude(0, err)
			}
			wait(ctx, every)
		}
		closeSoon(asked.conn)
	}
}

// asker is a connection for commits.
type asker struct {
	conn   *pgx.Conn
	warned bool
}

func (e *Edge) asker(ctx context.Context, p primary) (*asker, error) {
	var a asker
	var err error
	a.conn, err = e.connect(ctx, p.route, p.name, func(_ *pgconn.PgConn, n *pgconn.Notice) {
		a.warned = a.warned || n.Severity == "WARNING"
	})
	return &a, err
}

// errUnproved says that the server confirmed a commit before its standbys did.
var errUnproved = errors.New("a commit was confirmed with a warning")

// commit waits for the standbys, as any commit does. A warning of the server says that it did not
// wait.
func (a *asker) commit(ctx context.Context) error {
	a.warned = false
	_, err := a.conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'howdah', 'an edge asks while etcd is silent')")
	if err == nil && a.warned {
		err = errUnproved
	}
	return err
}
