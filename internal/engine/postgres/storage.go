package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// How much storage a primary was told that there is, as it shows itself.
const (
	StorageLeft = "off"
	StorageFull = "on"   // users may only give some back
	StorageOver = "over" // users may only drop and truncate
)

// The module's functions (extensions/howdah/src/storage.c), and how each level is told. A module
// of an older release has only the first one.
const (
	fullFunction  = `CREATE OR REPLACE FUNCTION public.howdah_storage_full(boolean) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_storage_full'`
	levelFunction = `CREATE OR REPLACE FUNCTION public.howdah_storage_level(integer) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_storage_level'`
)

var storageWords = map[string]struct{ function, create, call string }{
	StorageLeft: {"public.howdah_storage_full(boolean)", fullFunction, "SELECT public.howdah_storage_full(false)"},
	StorageFull: {"public.howdah_storage_full(boolean)", fullFunction, "SELECT public.howdah_storage_full(true)"},
	StorageOver: {"public.howdah_storage_level(integer)", levelFunction, "SELECT public.howdah_storage_level(2)"},
}

// SetStorage tells a primary how much storage its users have, and answers since when it knows, by
// its own clock. Facts.StorageFull says what it was told last; it forgets that when it
// is started again. conn is rdsadmin's on the platform's database. It is idempotent.
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

// usersOnly are sessions of users. A commit that waits for standbys is left alone: it
// has all the storage that it needs.
const usersOnly = ` FROM pg_stat_activity a WHERE wait_event IS DISTINCT FROM 'SyncRep'
	AND usesysid NOT IN (SELECT oid FROM pg_roles WHERE rolsuper)`

// CancelWrites cancels the statements of users that have written something.
func CancelWrites(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT pg_cancel_backend(pid)`+usersOnly+` AND backend_type = 'client backend' AND state = 'active' AND backend_xid IS NOT NULL`)
	if err != nil {
		return fmt.Errorf("cancel writes: %w", err)
	}
	return nil
}

// EndWriters ends sessions that got past what the primary refuses, because they were under
// way before: statements of users of transactions that are older than since, if they write,
// and at StorageOver in any case; and the workers of subscriptions, which begin anew and are
// refused. A cancel is not enough: a function may catch it.
func EndWriters(ctx context.Context, conn *pgx.Conn, level string, since time.Time) error {
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid)`+usersOnly+` AND backend_type = 'client backend' AND state = 'active' AND xact_start < $1 AND (backend_xid IS NOT NULL OR $2)
	UNION ALL SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE backend_type LIKE 'logical replication%worker' AND wait_event IS DISTINCT FROM 'SyncRep' AND backend_start < $1`, since, level == StorageOver)
	if err != nil {
		return fmt.Errorf("end writers: %w", err)
	}
	return nil
}

// EndSorts ends what keeps more than most bytes of temporary files: the session of
// a user that sorts, also one that does nothing now, and whoever decodes for a slot.
func EndSorts(ctx context.Context, conn *pgx.Conn, u Usage, most int64) error {
	sorts, slots := Above(u.Sorts, most), Above(u.Slots, most)
	if len(sorts)+len(slots) == 0 {
		return nil
	}
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid)`+usersOnly+` AND backend_type IN ('client backend', 'walsender')
	AND (pid = ANY($1) OR pid IN (SELECT leader_pid FROM pg_stat_activity WHERE pid = ANY($1))
		OR pid IN (SELECT active_pid FROM pg_replication_slots WHERE slot_name = ANY($2)))`, sorts, slots)
	if err != nil {
		return fmt.Errorf("end large sorts: %w", err)
	}
	return nil
}
