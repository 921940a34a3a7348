package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// inDatabases is what is set up in each of users' databases. It begins the names of the rows of the
// settings table that keep in which ones it is. An upgrade to another major version leaves the row, and
// not what it says: so the version is in the name. Its methods need rdsadmin's session on the platform's
// database.
type inDatabases string

// row is the name of a database's row, as SQL.
func (i inDatabases) row(oid string) string {
	return "concat_ws(' ', '" + string(i) + "', current_setting('server_version_num')::integer / 10000, " + oid + ")"
}

// lacking returns the databases in which it is not, or not in the form with this serial number.
func (i inDatabases) lacking(ctx context.Context, conn *pgx.Conn, serial int64) ([]Database, error) {
	return openDatabases(ctx, conn, `NOT EXISTS (SELECT FROM public.howdah_done WHERE what = `+i.row("d.oid")+` AND serial = $1)`, serial)
}

// record notes in which databases it is now, and forgets those that are gone.
func (i inDatabases) record(ctx context.Context, conn *pgx.Conn, serial int64, databases []uint32) error {
	_, err := conn.Exec(ctx, `WITH gone AS (DELETE FROM public.howdah_done WHERE what LIKE '`+string(i)+` %'
		AND what NOT IN (SELECT `+i.row("d.oid")+` FROM pg_catalog.pg_database d))
		INSERT INTO public.howdah_done (what, serial) SELECT `+i.row("oid")+`, $1 FROM unnest($2::oid[]) AS oid
		ON CONFLICT (what) DO UPDATE SET serial = excluded.serial, at = now()`, serial, databases)
	return err
}

// openDatabases returns the databases of users, and template1, that let somebody in and that the
// condition holds for.
func openDatabases(ctx context.Context, conn *pgx.Conn, condition string, args ...any) ([]Database, error) {
	rows, err := conn.Query(ctx, `SELECT d.oid, d.datname::text FROM pg_catalog.pg_database d
		WHERE d.datallowconn AND d.datconnlimit <> -2 AND d.datname <> 'rdsadmin' AND `+condition+` ORDER BY d.oid`, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Database])
}
