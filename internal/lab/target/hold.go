package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/host/pace"
	"howdah/internal/lab/experiment"
)

// lock is what a run locks in the database that it measures: the letters "lab" and a number.
const lock = 0x6c616231

// holder is a session that holds the lab's lock.
type holder struct {
	conn  *pgx.Conn
	pid   int
	began time.Time
}

// Open sees to it that no other run measures the same database: both would be wrong, and one would drop
// what the other one made.
func (a *Address) Open(ctx context.Context, _ experiment.Wanted) error { return a.hold(ctx, nil) }

// hold takes the lock. before is a session of ours that had it, and was cut; nil: there was none.
func (a *Address) hold(ctx context.Context, before *holder) error {
	conn, err := pgx.ConnectConfig(ctx, a.Server.Config())
	if err != nil {
		return fmt.Errorf("connect to the target: %w", err)
	}
	a.held = &holder{conn: conn}
	const sql = "SELECT pid, backend_start FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid()"
	if err := conn.QueryRow(ctx, sql).Scan(&a.held.pid, &a.held.began); err != nil {
		return fmt.Errorf("lock the target: %w", err)
	}
	if err := a.same(ctx, conn); err != nil {
		return err
	}
	if err := take(ctx, conn, before); err != nil {
		return err
	}
	// The session rests for as long as the run takes. Older servers have no such limit.
	_, err = conn.Exec(ctx, "SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'")
	if err != nil {
		return fmt.Errorf("lock the target: %w", err)
	}
	return nil
}

// goesWithin is how long a session may take to end, or to answer.
const goesWithin = 10 * time.Second

// take takes the lock. The server may not know yet that the session from before was cut.
func take(ctx context.Context, conn *pgx.Conn, before *holder) error {
	if before != nil {
		const sql = "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE pid = $1 AND backend_start = $2"
		if _, err := conn.Exec(ctx, sql, before.pid, before.began); err != nil {
			return fmt.Errorf("lock the target: %w", err)
		}
	}
	for until := time.Now().Add(goesWithin); ; {
		var free bool
		if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_try_advisory_lock($1)", int64(lock)).Scan(&free); err != nil {
			return fmt.Errorf("lock the target: %w", err)
		}
		switch {
		case free:
			return nil
		case before == nil || time.Now().After(until):
			return ErrBusy
		}
		if !pace.Sleep(ctx, lookEvery) {
			return ctx.Err()
		}
	}
}

// Become changes nothing: an experiment whose settings want different servers needs a Howdah. It returns
// ErrOther if another server answers than before. The lock is lost with a session that was cut, and is taken
// again.
func (a *Address) Become(ctx context.Context, _ experiment.Wanted) (anew bool, err error) {
	if before := a.held; before == nil || before.dead(ctx) {
		_ = a.Close(ctx) // it is dead
		return false, a.hold(ctx, before)
	}
	conn, err := pgx.ConnectConfig(ctx, a.Server.Config())
	if err != nil {
		return false, fmt.Errorf("connect to the target: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return false, a.same(ctx, conn)
}

func (h *holder) dead(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, goesWithin)
	defer cancel()
	return h.conn.Ping(ctx) != nil
}

// same returns ErrOther if the server is not the one from before, and remembers the first one.
func (a *Address) same(ctx context.Context, conn *pgx.Conn) error {
	system, err := systemOf(ctx, conn)
	switch {
	case err != nil:
		return err
	case a.system == "":
		a.system = system
	case a.system != system:
		return fmt.Errorf("%w: at %s there was %s, and is %s", ErrOther, a.Name(), a.system, system)
	}
	return nil
}

// systemOf tells databases of all servers apart. Where the server's number may not be asked for, the
// database's own has to do.
func systemOf(ctx context.Context, conn *pgx.Conn) (string, error) {
	var database uint32
	if err := conn.QueryRow(ctx, "SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()").Scan(&database); err != nil {
		return "", fmt.Errorf("ask the target which database it is: %w", err)
	}
	server := "unknown"
	err := conn.QueryRow(ctx, "SELECT system_identifier::text FROM pg_catalog.pg_control_system()").Scan(&server)
	var refused *pgconn.PgError
	if err != nil && !errors.As(err, &refused) {
		return "", fmt.Errorf("ask the target which server it is: %w", err)
	}
	return fmt.Sprintf("database %d of server %s", database, server), nil
}

// Close lets others measure. The server stays.
func (a *Address) Close(ctx context.Context) error {
	if a.held == nil {
		return nil
	}
	held := a.held
	a.held = nil
	return held.conn.Close(ctx)
}
