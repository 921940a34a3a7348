package environment

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// asking collects the answers of a server, and what it did not answer.
type asking struct {
	conn    *pgx.Conn
	missing []string
}

// one reads a row. What the server refuses is named, and left as it is.
func (a *asking) one(ctx context.Context, what, sql string, into ...any) {
	if err := a.conn.QueryRow(ctx, sql).Scan(into...); err != nil {
		a.missing = append(a.missing, fmt.Sprintf("%s: %v", what, err))
	}
}

// What an answer has at most, as far as is believed.
const (
	mostRows  = 10_000
	mostBytes = 4 << 20
)

var errLong = errors.New("it is more than a server has of that")

// each calls add for every row, whose columns are texts.
func (a *asking) each(ctx context.Context, what, sql string, columns int, add func([]string)) {
	values := make([]string, columns)
	places := make([]any, columns)
	for i := range values {
		places[i] = &values[i]
	}
	rows, err := a.conn.Query(ctx, sql)
	if err == nil {
		n, bytes := 0, 0
		_, err = pgx.ForEachRow(rows, places, func() error {
			for _, v := range values {
				bytes += len(v)
			}
			if n++; n > mostRows || bytes > mostBytes {
				return errLong
			}
			add(values)
			return nil
		})
	}
	if err != nil {
		a.missing = append(a.missing, fmt.Sprintf("%s: %v", what, err))
	}
}

// settingsSQL leaves out what our own connection set, and what a server works out by itself while
// it starts.
const settingsSQL = `SELECT name, coalesce(setting, ''), coalesce(unit, ''), source FROM pg_settings
 WHERE source NOT IN ('default', 'client', 'session', 'interactive', 'test') AND setting IS DISTINCT FROM boot_val ORDER BY name`

func readDatabase(ctx context.Context, conn *pgx.Conn) (Database, []string) {
	d := Database{Settings: map[string]Setting{}, Extensions: map[string]string{}}
	a := &asking{conn: conn}
	a.one(ctx, "version", `SELECT version(), current_setting('server_version_num')::int, pg_postmaster_start_time(), pg_is_in_recovery(),
		current_setting('data_checksums')::bool`, &d.Version, &d.Number, &d.Started, &d.InRecovery, &d.Checksums)
	a.one(ctx, "database", `SELECT datname, pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE datname = current_database()`,
		&d.Name, &d.Encoding, &d.Collation)
	a.one(ctx, "size", `SELECT pg_database_size(current_database())`, &d.SizeBytes)
	a.one(ctx, "system id", `SELECT system_identifier::text FROM pg_control_system()`, &d.SystemID)
	a.one(ctx, "build", `SELECT setting FROM pg_config() WHERE name = 'CONFIGURE'`, &d.Build)
	a.each(ctx, "settings", settingsSQL, 4, func(v []string) {
		d.Settings[v[0]] = Setting{Value: Mask(v[0], v[1]), Unit: v[2], Source: v[3]}
	})
	a.each(ctx, "extensions", `SELECT extname, extversion FROM pg_extension`, 2, func(v []string) { d.Extensions[v[0]] = v[1] })
	a.each(ctx, "standbys", `SELECT application_name, coalesce(state, ''), coalesce(sync_state, '') FROM pg_stat_replication ORDER BY 1`, 3,
		func(v []string) { d.Standbys = append(d.Standbys, Standby{Name: v[0], State: v[1], Sync: v[2]}) })
	return d, a.missing
}
