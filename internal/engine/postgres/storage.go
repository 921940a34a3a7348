package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// StorageSize is how many bytes a server has on disk: its databases, its WAL, and what
// queries keep for themselves. It looks at every file. conn is rdsmon's or rdsadmin's.
func StorageSize(ctx context.Context, conn *pgx.Conn) (bytes int64, err error) {
	const sql = `SELECT (SELECT coalesce(sum(pg_database_size(oid)), 0) FROM pg_database)::bigint
	+ (SELECT coalesce(sum(size), 0) FROM pg_ls_waldir())::bigint
	+ (SELECT coalesce(sum(f.size), 0) FROM pg_tablespace t, pg_ls_tmpdir(t.oid) f)::bigint`
	if err := conn.QueryRow(ctx, sql).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("measure storage: %w", err)
	}
	return bytes, nil
}

// storageFunction is the module's (extensions/howdah/src/storage.c).
const storageFunction = `CREATE OR REPLACE FUNCTION public.howdah_storage_full(boolean) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_storage_full'`

// SetStorageFull tells a primary whether its users may take more storage. When they may
// not any more, the statements that take some are cancelled: commits stay, and wait for
// standbys as before. Facts.StorageFull says what it was told last; it forgets that when it
// is started again. conn is rdsadmin's on the platform's database. It is idempotent.
func SetStorageFull(ctx context.Context, conn *pgx.Conn, full bool) error {
	var there bool
	err := conn.QueryRow(ctx, "SELECT to_regprocedure('public.howdah_storage_full(boolean)') IS NOT NULL").Scan(&there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, storageFunction)
	}
	if err == nil {
		_, err = conn.Exec(ctx, "SELECT public.howdah_storage_full($1)", full)
	}
	if err == nil && full {
		_, err = conn.Exec(ctx, cancelUsers+" AND backend_xid IS NOT NULL")
	}
	if err != nil {
		return fmt.Errorf("tell the server that its storage is full (%t): %w", full, err)
	}
	return nil
}

const cancelUsers = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
	WHERE backend_type = 'client backend' AND state = 'active' AND usesysid NOT IN (SELECT oid FROM pg_roles WHERE rolsuper)`

// CancelSorts cancels the queries of users that keep more than so many bytes in files of
// their own, as large sorts do. conn is rdsadmin's.
func CancelSorts(ctx context.Context, conn *pgx.Conn, most int64) error {
	_, err := conn.Exec(ctx, cancelUsers+` AND pid IN (SELECT substring(f.name FROM '^pgsql_tmp([0-9]+)')::int
	FROM pg_tablespace t, pg_ls_tmpdir(t.oid) f GROUP BY 1 HAVING sum(f.size) > $1)`, most)
	if err != nil {
		return fmt.Errorf("cancel large sorts: %w", err)
	}
	return nil
}
