// Package visitor enters users' databases as the platform's superuser, without harm to the server. A user
// who holds a lock on a database, as by ALTER DATABASE … RENAME in an open transaction, makes every login
// there wait. A login that waits takes one of the server's connections, also when its client has gone, as
// PostgreSQL looks after the client only once the login stands. Whoever tries again and again would take
// all of them, those that are reserved for superusers too.
package visitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
)

const (
	// patience is how long a login may take, and tidying after one that took longer.
	patience = 5 * time.Second
	// pause is how long a database is left alone after a visit that failed. It doubles with every
	// failure, up to longest.
	pause, longest = 5 * time.Second, 10 * time.Minute
)

// ErrStuck says that a login to a database did not come about in time. Whoever visits one database after
// the other ends the round.
var ErrStuck = errors.New("the login takes too long")

// Visitor visits the databases of one server. It remembers which of them failed. It is for one goroutine.
// The zero value is ready.
type Visitor struct {
	failed map[uint32]failure
}

type failure struct {
	pause time.Duration
	until time.Time
}

// Call does something in a database, as soon as nobody holds up logins there, and unless it failed a
// moment ago. It reports whether that was done; if not, and there is no error, it is not the time.
// platform is a superuser's session elsewhere on the server. connect makes a session in the database, and
// the session ends when do returns. The error wraps ErrStuck if the login took too long: nothing of it
// is left on the server.
func (v *Visitor) Call(ctx context.Context, platform *pgx.Conn, d postgres.Database, connect func(context.Context) (*pgx.Conn, error), do func(*pgx.Conn) error) (bool, error) {
	if time.Now().Before(v.failed[d.OID].until) {
		return false, nil
	}
	held, err := v.held(ctx, platform, d)
	if err != nil || held {
		return false, err
	}
	if err := enter(ctx, platform, d, connect, do); err != nil {
		if ctx.Err() == nil {
			v.later(d)
		}
		return false, fmt.Errorf("database %q: %w", d.Name, err)
	}
	delete(v.failed, d.OID)
	return true, nil
}

func (v *Visitor) held(ctx context.Context, platform *pgx.Conn, d postgres.Database) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return postgres.LoginsHeld(ctx, platform, d.OID)
}

// later leaves a database alone for a while.
func (v *Visitor) later(d postgres.Database) {
	if v.failed == nil {
		v.failed = map[uint32]failure{}
	}
	f := failure{pause: min(max(pause, 2*v.failed[d.OID].pause), longest)}
	f.until = time.Now().Add(f.pause)
	v.failed[d.OID] = f
}

func enter(ctx context.Context, platform *pgx.Conn, d postgres.Database, connect func(context.Context) (*pgx.Conn, error), do func(*pgx.Conn) error) error {
	logging, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := connect(logging)
	if err != nil && logging.Err() != nil {
		// Also where ctx has ended, as nobody else would end it.
		tidying, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return errors.Join(fmt.Errorf("%w: %w", ErrStuck, err), postgres.EndLogins(tidying, platform, d.OID))
	}
	if err != nil {
		return err
	}
	defer HangUp(conn)
	return do(conn)
}

// HangUp ends a session. A server that stands still is not waited for.
func HangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn.Close(ctx)
}
