package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Heritage says whose subscriptions a database has. It is the comment of the platform's database, which
// the module reads (extensions/howdah/src/heritage.c), and begins with the name.
type Heritage struct {
	Database string `json:"database"`
	// Disabled is how many subscriptions came with the data of From, and were disabled.
	Disabled int    `json:"disabled,omitempty"`
	From     string `json:"from,omitempty"`
}

const heritageSQL = "SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_catalog.pg_database WHERE datname = current_database()"

// ReadHeritage reads it. It is empty while nobody has written any. conn must be on the platform's database.
func ReadHeritage(ctx context.Context, conn *pgx.Conn) (h Heritage, err error) {
	var text string
	if err := conn.QueryRow(ctx, heritageSQL).Scan(&text); err != nil {
		return h, fmt.Errorf("read whose subscriptions there are: %w", err)
	}
	if json.Unmarshal([]byte(text), &h) != nil {
		return Heritage{}, nil //nolint:nilerr // it is about something else
	}
	return h, nil
}

// Inherit has the subscriptions be this database's. If they came with the data of another one, they are
// disabled first, in the same transaction: the other one may go on with their slots. Their slots are for
// their owners to forget. Data that say nothing are of an older release, and of this database. conn must be
// rdsadmin's, on the platform's database of a primary. It is idempotent.
func Inherit(ctx context.Context, conn *pgx.Conn, database string) (Heritage, error) {
	next := Heritage{Database: database}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		last, err := ReadHeritage(ctx, tx.Conn())
		if err != nil {
			return err
		}
		// Nothing waits long: who takes over before a standby has it does it again.
		if _, err := tx.Exec(ctx, "SELECT set_config('synchronous_commit', 'local', true), set_config('lock_timeout', '200ms', true)"); err != nil {
			return err
		}
		if last.Database == database {
			next = last
			return nil
		}
		if last.Database != "" {
			// As LeaveSource: in all databases at once, and without users' event triggers.
			const disable = "UPDATE pg_catalog.pg_subscription SET subenabled = false WHERE subenabled"
			if _, err := tx.Exec(ctx, "SET LOCAL allow_system_table_mods = on"); err != nil {
				return err
			}
			done, err := tx.Exec(ctx, disable)
			if err != nil {
				return err
			}
			if next.Disabled = int(done.RowsAffected()); next.Disabled > 0 {
				next.From = last.Database
			}
		}
		text, err := json.Marshal(next)
		if err != nil {
			return err
		}
		var comment string
		if err := tx.QueryRow(ctx, "SELECT format('COMMENT ON DATABASE %I IS %L', current_database(), $1::text)", string(text)).Scan(&comment); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, comment)
		return err
	})
	if err != nil {
		return Heritage{}, fmt.Errorf("see to subscriptions of other databases: %w", err)
	}
	return next, nil
}
