package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// These are the levels of storage that SetStorage sets and Facts.StorageFull shows.
const (
	StorageLeft = "off"
	StorageFull = "on"   // users may only free some
	StorageOver = "over" // users may only drop and truncate
)

// These are the module's functions (extensions/howdah/src/storage.c), and how each is called for a
// level. A module of an older release has only the first one.
const (
	fullFunction  = `CREATE OR REPLACE FUNCTION public.howdah_storage_full(boolean) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_storage_full'`
	levelFunction = `CREATE OR REPLACE FUNCTION public.howdah_storage_level(integer) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_storage_level'`
)

var storageWords = map[string]struct{ function, create, call string }{
	StorageLeft: {"public.howdah_storage_full(boolean)", fullFunction, "SELECT public.howdah_storage_full(false)"},
	StorageFull: {"public.howdah_storage_full(boolean)", fullFunction, "SELECT public.howdah_storage_full(true)"},
	StorageOver: {"public.howdah_storage_level(integer)", levelFunction, "SELECT public.howdah_storage_level(2)"},
}

// SetStorage tells a primary how much storage its users have. since is when the primary learned of
// it, by its own clock. Facts.StorageFull has the level that was set last; a restart of the primary
// forgets it. conn must be rdsadmin's, on the platform's database. SetStorage is idempotent.
func SetStorage(ctx context.Context, conn *pgx.Conn, level string) (since time.Time, err error) {
	word := storageWords[level]
	var there bool
	err = conn.QueryRow(ctx, "SELECT to_regprocedure($1) IS NOT NULL", word.function).Scan(&there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, word.create)
	}
	if err == nil {
		_, err = conn.Exec(ctx, word.call)
	}
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&since)
	}
	if err != nil {
		return since, fmt.Errorf("tell the server how much storage it has (%s): %w", level, err)
	}
	return since, nil
}

// usersOnly selects sessions of users. Their WAL senders are among them, which run SQL too. It leaves
// out commits that wait for standbys, as these have all the storage that they need.
const usersOnly = ` FROM pg_stat_activity a WHERE wait_event IS DISTINCT FROM 'SyncRep'
	AND usesysid NOT IN (SELECT oid FROM pg_roles WHERE rolsuper OR rolreplication) AND backend_type IN ('client backend', 'walsender')`

// CancelWrites cancels the statements of users whose transactions have written something.
func CancelWrites(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT pg_cancel_backend(pid)`+usersOnly+` AND state = 'active' AND backend_xid IS NOT NULL`)
	if err != nil {
		return fmt.Errorf("cancel writes: %w", err)
	}
	return nil
}

// EndWriters ends sessions that the primary does not refuse, because they began before it was told.
// These are sessions of users that run a statement in a transaction older than since: those that
// have written, and at StorageOver all of them, but for WAL senders that only read: PostgreSQL does
// not show when their transactions began. It also ends the older workers of subscriptions, which
// start again and are then refused. A cancel would not do, as a function may catch it.
func EndWriters(ctx context.Context, conn *pgx.Conn, level string, since time.Time) error {
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid)`+usersOnly+` AND state = 'active' AND coalesce(xact_start, query_start) < $1 AND (backend_xid IS NOT NULL OR $2 AND backend_type = 'client backend')
	UNION ALL SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE backend_type LIKE 'logical replication%worker' AND wait_event IS DISTINCT FROM 'SyncRep' AND backend_start < $1`, since, level == StorageOver)
	if err != nil {
		return fmt.Errorf("end writers: %w", err)
	}
	return nil
}

// EndSorts ends the sessions of users, idle ones too, whose temporary files take more than most
// bytes. It also ends the processes that decode for a slot whose files take more.
func EndSorts(ctx context.Context, conn *pgx.Conn, u Usage, most int64) error {
	sorts, slots := Above(u.Sorts, most), Above(u.Slots, most)
	if len(sorts)+len(slots) == 0 {
		return nil
	}
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid)`+usersOnly+`
	AND (pid = ANY($1) OR pid IN (SELECT leader_pid FROM pg_stat_activity WHERE pid = ANY($1))
		OR pid IN (SELECT active_pid FROM pg_replication_slots WHERE slot_name = ANY($2)))`, sorts, slots)
	if err != nil {
		return fmt.Errorf("end large sorts: %w", err)
	}
	return nil
}
