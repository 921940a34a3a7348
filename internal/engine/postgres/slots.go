package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/jackc/pgx/v5"

	"howdah/extensions"
)

// slotsInDatabases is that users can use logical slots.
const slotsInDatabases inDatabases = "slots"

// LogicalSlots is the module's setting that says whether users may have logical slots
// (extensions/howdah/src/slot.c).
const LogicalSlots = "howdah.logical_slots"

// ErrNoSlots says that a server runs with a module that gives users no slots.
var ErrNoSlots = errors.New("its module gives users no logical slots: it is of an older release, and is loaded anew when PostgreSQL starts next")

func slotsSerial() int64 { return int64(crc32.ChecksumIEEE([]byte(extensions.Slots))) }

// SlotDatabases returns the databases in which users cannot use logical slots yet, or not as this
// release has them do. The platform's own is never one of them. conn must be rdsadmin's, on the
// platform's database of a primary.
func SlotDatabases(ctx context.Context, conn *pgx.Conn) ([]Database, error) {
	var knows bool
	err := conn.QueryRow(ctx, "SELECT current_setting($1, true) IS NOT NULL", LogicalSlots).Scan(&knows)
	if err == nil && !knows {
		err = ErrNoSlots
	}
	if err != nil {
		return nil, fmt.Errorf("see which databases have slots for users: %w", err)
	}
	lacking, err := slotsInDatabases.lacking(ctx, conn, slotsSerial())
	if err != nil {
		return nil, fmt.Errorf("see which databases have slots for users: %w", err)
	}
	return lacking, nil
}

// SetUpSlots lets users use logical slots in one database. conn must be rdsadmin's, on that database
// of a primary. It is idempotent.
func SetUpSlots(ctx context.Context, conn *pgx.Conn) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, extensions.Slots, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		return fmt.Errorf("let users of a database use slots: %w", err)
	}
	return nil
}

// SlotsSetUp records in which databases users can use logical slots, and forgets those that are
// gone. conn must be rdsadmin's, on the platform's database of a primary.
func SlotsSetUp(ctx context.Context, conn *pgx.Conn, databases []uint32) error {
	if err := slotsInDatabases.record(ctx, conn, slotsSerial(), databases); err != nil {
		return fmt.Errorf("record which databases have slots for users: %w", err)
	}
	return nil
}

// DropStaleSlots drops the logical slots that a standby has of the time when it was a primary, and
// returns their names. They would keep WAL and old rows for nobody, stand in the way of slots that
// are copied from the primary, and come back with an old position if the standby were promoted. On
// the standby of a version that copies slots, it leaves those that were copied. It does nothing on a
// primary. conn must be rdsadmin's, on the platform's database. Call it only when another server has
// become the primary: a primary that restarts is a standby for a moment, too.
func DropStaleSlots(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	return dropSlots(ctx, conn, "drop the slots of a former primary",
		`pg_catalog.pg_is_in_recovery() AND NOT active AND NOT coalesce((to_jsonb(s)->>'synced')::boolean, false)`)
}

// DropUserSlots ends whoever uses a logical slot on a primary, drops all of these slots, and returns
// the names of those that it dropped. Those that are still in use are left for the next call. It is
// for a server on which logical replication was turned off: PostgreSQL does not start again while it
// has such a slot. conn must be rdsadmin's, on the platform's database.
func DropUserSlots(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	const end = `SELECT pg_catalog.pg_terminate_backend(active_pid) FROM pg_catalog.pg_replication_slots
		WHERE slot_type = 'logical' AND NOT temporary AND active_pid IS NOT NULL AND NOT pg_catalog.pg_is_in_recovery()`
	if _, err := conn.Exec(ctx, end); err != nil {
		return nil, fmt.Errorf("end who uses logical slots: %w", err)
	}
	return dropSlots(ctx, conn, "drop logical slots", `NOT pg_catalog.pg_is_in_recovery() AND NOT active`)
}

// dropSlots drops the logical slots for which condition holds. The list is made first: to drop one
// changes what the view shows.
func dropSlots(ctx context.Context, conn *pgx.Conn, doing, condition string) ([]string, error) {
	rows, err := conn.Query(ctx, `SELECT slot_name::text FROM pg_catalog.pg_replication_slots s
		WHERE slot_type = 'logical' AND NOT temporary AND `+condition+` ORDER BY slot_name`)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	var dropped []string
	for _, name := range names {
		if _, err := conn.Exec(ctx, "SELECT pg_catalog.pg_drop_replication_slot($1)", name); err != nil {
			return dropped, fmt.Errorf("%s: %q: %w", doing, name, err)
		}
		dropped = append(dropped, name)
	}
	return dropped, nil
}

// WaitForStandbys has the logical slots of users that survive a failover wait for these physical
// slots: nobody outside is to have what a standby that may be promoted lacks. It does nothing if that
// is so already, or if the version has no such slots. conn must be rdsadmin's, on the platform's
// database of a primary.
func WaitForStandbys(ctx context.Context, conn *pgx.Conn, slots string) error {
	var now *string
	err := conn.QueryRow(ctx, "SELECT current_setting('synchronized_standby_slots', true)").Scan(&now)
	if err != nil {
		return fmt.Errorf("see for whom slots of users wait: %w", err)
	}
	if now == nil || *now == slots {
		return nil
	}
	// The names are the platform's own: letters, digits and underscores.
	if _, err := conn.Exec(ctx, "ALTER SYSTEM SET synchronized_standby_slots = '"+slots+"'"); err != nil {
		return fmt.Errorf("have slots of users wait for %q: %w", slots, err)
	}
	if _, err := conn.Exec(ctx, "SELECT pg_catalog.pg_reload_conf()"); err != nil {
		return fmt.Errorf("have slots of users wait for %q: %w", slots, err)
	}
	return nil
}
