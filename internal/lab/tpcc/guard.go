package tpcc

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/tpcc/wire"
)

// server is what a server says of itself before anything runs.
type server struct {
	key      string // tells servers apart
	standby  bool
	readOnly bool
	pooled   bool // a pooler decides how many sessions there may be
	most     int  // sessions that it takes
	reserved int  // of them, for administrators
	inUse    int  // of them, with the one that asked
	// Limits of the role and the database, less what is in use; nil for none.
	roleRoom, databaseRoom *int
}

// serverSQL asks for what a server is. Without privileges the kind of others' sessions is hidden, and
// those with a database are taken for clients.
const serverSQL = `
WITH client AS (
	SELECT datname, usename FROM pg_stat_activity
	WHERE backend_type = 'client backend' OR backend_type IS NULL AND datid IS NOT NULL)
SELECT concat_ws(' ', pg_postmaster_start_time(), inet_server_addr(), inet_server_port()),
	pg_is_in_recovery(), current_setting('transaction_read_only')::boolean, pg_backend_pid(),
	current_setting('max_connections')::integer,
	current_setting('superuser_reserved_connections')::integer + coalesce(current_setting('reserved_connections', true)::integer, 0),
	(SELECT count(*) FROM client),
	(SELECT nullif(rolconnlimit, -1) - (SELECT count(*) FROM client WHERE usename = rolname) FROM pg_roles WHERE rolname = session_user),
	(SELECT nullif(datconnlimit, -1) - (SELECT count(*) FROM client WHERE client.datname = d.datname)
		FROM pg_database AS d WHERE d.datname = current_database())`

// askServer asks over a session that stays open.
func askServer(ctx context.Context, conn *pgx.Conn) (server, error) {
	var s server
	var pid uint32
	err := conn.QueryRow(ctx, serverSQL).Scan(&s.key, &s.standby, &s.readOnly, &pid, &s.most, &s.reserved, &s.inUse, &s.roleRoom, &s.databaseRoom)
	if err != nil {
		return s, fmt.Errorf("ask the server what it is: %w", err)
	}
	s.pooled = pid != conn.PgConn().PID()
	return s, nil
}

// writable returns an error if the server takes no writes.
func (s server) writable() error {
	if s.standby {
		return ErrStandby
	}
	if s.readOnly {
		return fmt.Errorf("%w: its transactions are read only", ErrStandby)
	}
	return nil
}

// fits returns ErrNoRoom if the server does not take so many more sessions.
func (s server) fits(sessions int) error {
	if s.pooled {
		return nil
	}
	if room := s.most - s.reserved - s.inUse; sessions > room {
		return fmt.Errorf("%w: %d are asked for, and there is room for %d (max_connections is %d, %d are reserved, %d in use)",
			ErrNoRoom, sessions, max(room, 0), s.most, s.reserved, s.inUse)
	}
	for what, room := range map[string]*int{"role": s.roleRoom, "database": s.databaseRoom} {
		if room != nil && sessions > *room {
			return fmt.Errorf("%w: %d are asked for, and the connection limit of the %s leaves %d", ErrNoRoom, sessions, what, max(*room, 0))
		}
	}
	return nil
}

// askTime bounds how long questions before a run may take.
const askTime = 10 * time.Second

// look asks a server over a session of its own.
func look(ctx context.Context, config *pgx.ConnConfig) (server, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, wire.Prepared(config))
	if err != nil {
		return server{}, err
	}
	defer closeConn(conn)
	s, err := askServer(ctx, conn)
	// This session ends before the others begin.
	s.inUse--
	for _, room := range []*int{s.roleRoom, s.databaseRoom} {
		if room != nil {
			*room++
		}
	}
	return s, err
}

// guard returns an error if a target cannot take its share of the users. Targets may lead to the same
// server.
func guard(ctx context.Context, targets []*pgx.ConnConfig, users int) error {
	servers := map[string]server{}
	sessions := map[string]int{}
	for i, target := range targets {
		s, err := look(ctx, target)
		if err == nil {
			err = s.writable()
		}
		if err != nil {
			return fmt.Errorf("target %s: %w", target.Host, err)
		}
		servers[s.key] = s
		sessions[s.key] += (users - i + len(targets) - 1) / len(targets)
	}
	for key, s := range servers {
		if err := s.fits(sessions[key]); err != nil {
			return err
		}
	}
	return nil
}
