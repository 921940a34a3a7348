package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/extensions"
	"howdah/internal/model/member"
)

// driversInDatabases is what drivers ask.
const driversInDatabases inDatabases = "drivers"

// seenFunction is how the module is told (extensions/howdah/src/topology.c).
const seenFunction = `CREATE OR REPLACE FUNCTION public.howdah_seen(text) RETURNS void LANGUAGE c STRICT AS 'howdah', 'howdah_seen'`

// driversSQL makes what drivers ask a cluster of a kind, in one database.
func driversSQL(kind member.ClusterKind) string { return driversParts("common", string(kind)) }

// driversParts are these parts of drivers.sql.
func driversParts(names ...string) string {
	sql := ""
	for _, part := range strings.Split(extensions.Drivers, "\n-- part: ")[1:] {
		if name, text, _ := strings.Cut(part, "\n"); slices.Contains(names, name) {
			sql += text
		}
	}
	return sql
}

// driversSerial is the number of what driversSQL makes.
func driversSerial(kind member.ClusterKind) int64 {
	return int64(crc32.ChecksumIEEE([]byte(driversSQL(kind))))
}

// ErrNoTopology says that a server runs with a module that knows no clusters.
var ErrNoTopology = errors.New("its module is of an older release, and is loaded anew when PostgreSQL starts next")

// DriverDatabases returns the databases that do not answer drivers yet, or not as this release has
// them answer. It also makes what SetSeen calls. conn must be rdsadmin's, on the platform's database
// of a primary.
func DriverDatabases(ctx context.Context, conn *pgx.Conn, kind member.ClusterKind) ([]Database, error) {
	var knows, told bool
	err := conn.QueryRow(ctx, "SELECT current_setting('howdah.cluster', true) IS NOT NULL, to_regprocedure('public.howdah_seen(text)') IS NOT NULL").Scan(&knows, &told)
	if err == nil && !knows {
		err = ErrNoTopology
	}
	if err == nil && !told {
		_, err = conn.Exec(ctx, seenFunction)
	}
	if err != nil {
		return nil, fmt.Errorf("see which databases answer drivers: %w", err)
	}
	lacking, err := driversInDatabases.lacking(ctx, conn, driversSerial(kind))
	if err != nil {
		return nil, fmt.Errorf("see which databases answer drivers: %w", err)
	}
	return lacking, nil
}

// FormerDrivers returns all databases of a server whose data were those of a cluster, until
// DriversRemoved; of any other one none. conn must be rdsadmin's, on the platform's database.
func FormerDrivers(ctx context.Context, conn *pgx.Conn) ([]Database, error) {
	all, err := openDatabases(ctx, conn, "EXISTS (SELECT FROM public.howdah_done WHERE what LIKE '"+string(driversInDatabases)+" %')")
	if err != nil {
		return nil, fmt.Errorf("see which databases answer drivers: %w", err)
	}
	return all, nil
}

// RemoveDrivers takes away from a database what has drivers take it for a Multi-AZ DB cluster. It fails
// while something of a user's depends on that. conn must be rdsadmin's, on that database of a primary. It is idempotent.
func RemoveDrivers(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, driversParts("former"), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("have a database answer drivers no more: %w", err)
	}
	return nil
}

// DriversRemoved records that RemoveDrivers was done in all databases. conn must be rdsadmin's, on the
// platform's database of a primary.
func DriversRemoved(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "DELETE FROM public.howdah_done WHERE what LIKE '"+string(driversInDatabases)+" %'"); err != nil {
		return fmt.Errorf("record that databases answer drivers no more: %w", err)
	}
	return nil
}

// SetUpDrivers has one database answer drivers. conn must be rdsadmin's, on that database of a
// primary. It is idempotent.
func SetUpDrivers(ctx context.Context, conn *pgx.Conn, kind member.ClusterKind) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, driversSQL(kind), pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		return fmt.Errorf("have a database answer drivers: %w", err)
	}
	return nil
}

// DriversSetUp records that databases answer drivers, and forgets those that are gone. conn must be
// rdsadmin's, on the platform's database of a primary.
func DriversSetUp(ctx context.Context, conn *pgx.Conn, kind member.ClusterKind, databases []uint32) error {
	if err := driversInDatabases.record(ctx, conn, driversSerial(kind), databases); err != nil {
		return fmt.Errorf("record which databases answer drivers: %w", err)
	}
	return nil
}

// SetSeen tells a server, primary or standby, what its agent sees of the cluster. A restart of the
// server forgets it. conn must be rdsadmin's, on the platform's database. The error wraps
// ErrNoTopology while no primary has made what it calls.
func SetSeen(ctx context.Context, conn *pgx.Conn, seen member.Seen) error {
	text, err := json.Marshal(seen)
	if err == nil {
		_, err = conn.Exec(ctx, "SELECT public.howdah_seen($1)", string(text))
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "42883" { // undefined_function
		err = ErrNoTopology
	}
	if err != nil {
		return fmt.Errorf("tell a server of its cluster: %w", err)
	}
	return nil
}
