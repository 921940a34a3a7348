package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// LoginsHeld reports whether a login to a database would wait, because somebody holds a lock on the
// database, or waits for one. conn is to any database of the server.
func LoginsHeld(ctx context.Context, conn *pgx.Conn, database uint32) (held bool, err error) {
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'object' AND database = 0
		AND classid = 'pg_catalog.pg_database'::pg_catalog.regclass AND objid = $1
		AND (NOT granted OR mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')))`, database).Scan(&held)
	if err != nil {
		return false, fmt.Errorf("see whether logins wait: %w", err)
	}
	return held, nil
}

// EndLogins ends the logins that wait for a lock on a database. PostgreSQL does not tell whose they are
// before they stand: so those of users end too, who are told, and may try again. conn must be a
// superuser's, on another database.
func EndLogins(ctx context.Context, conn *pgx.Conn, database uint32) error {
	_, err := conn.Exec(ctx, `SELECT pg_catalog.pg_terminate_backend(l.pid) FROM pg_catalog.pg_locks l
		WHERE l.locktype = 'object' AND l.database = 0 AND l.classid = 'pg_catalog.pg_database'::pg_catalog.regclass AND l.objid = $1
		AND NOT l.granted AND l.mode = 'RowExclusiveLock'
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.pid = l.pid AND a.datid IS NOT NULL)`, database)
	if err != nil {
		return fmt.Errorf("end logins that wait: %w", err)
	}
	return nil
}
