// Package seats says what a server is, and how many sessions it takes.
package seats

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Server is what a server says of itself.
type Server struct {
	Key      string // tells servers apart
	Standby  bool
	ReadOnly bool
	Pooled   bool // a pooler decides how many sessions there may be
	Most     int  // sessions that it takes
	Reserved int  // of them, for administrators
	InUse    int  // of them, with the one that asked
	// Limits of the role and the database, less what is in use; nil for none.
	RoleRoom, DatabaseRoom *int
}

// sql asks for what a server is. Without privileges the kind of others' sessions is hidden, and those with a
// database are taken for clients.
const sql = `
WITH client AS (
	SELECT datname, usename FROM pg_catalog.pg_stat_activity
	WHERE backend_type = 'client backend' OR backend_type IS NULL AND datid IS NOT NULL)
SELECT pg_catalog.concat_ws(' ', pg_catalog.pg_postmaster_start_time(), pg_catalog.inet_server_addr(), pg_catalog.inet_server_port()),
	pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')::boolean, pg_catalog.pg_backend_pid(),
	pg_catalog.current_setting('max_connections')::integer,
	pg_catalog.current_setting('superuser_reserved_connections')::integer + coalesce(pg_catalog.current_setting('reserved_connections', true)::integer, 0),
	(SELECT count(*) FROM client),
	(SELECT nullif(rolconnlimit, -1) - (SELECT count(*) FROM client WHERE usename = rolname) FROM pg_catalog.pg_roles WHERE rolname = session_user),
	(SELECT nullif(datconnlimit, -1) - (SELECT count(*) FROM client WHERE client.datname = d.datname)
		FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())`

// Ask asks over a session that stays open.
func Ask(ctx context.Context, conn *pgx.Conn) (Server, error) {
	var s Server
	var pid uint32
	err := conn.QueryRow(ctx, sql).Scan(&s.Key, &s.Standby, &s.ReadOnly, &pid, &s.Most, &s.Reserved, &s.InUse, &s.RoleRoom, &s.DatabaseRoom)
	if err != nil {
		return s, fmt.Errorf("ask the server what it is: %w", err)
	}
	s.Pooled = pid != conn.PgConn().PID()
	return s, nil
}

// Without is the server once the session that asked has ended.
func (s Server) Without() Server {
	s.InUse--
	for _, room := range []**int{&s.RoleRoom, &s.DatabaseRoom} {
		if *room != nil {
			*room = new(**room + 1)
		}
	}
	return s
}

// Lacks says why a server does not take so many more sessions, or "" if it does.
func (s Server) Lacks(sessions int) string {
	if s.Pooled {
		return ""
	}
	if room := s.Most - s.Reserved - s.InUse; sessions > room {
		return fmt.Sprintf("%d are asked for, and there is room for %d (max_connections is %d, %d are reserved, %d in use)", sessions, max(room, 0), s.Most, s.Reserved, s.InUse)
	}
	for _, limit := range []struct {
		what string
		room *int
	}{{"role", s.RoleRoom}, {"database", s.DatabaseRoom}} {
		if limit.room != nil && sessions > *limit.room {
			return fmt.Sprintf("%d are asked for, and the connection limit of the %s leaves %d", sessions, limit.what, max(*limit.room, 0))
		}
	}
	return ""
}
