package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// LetIn lets superusers into all databases but template0, also into those that nobody may connect to,
// and returns their names. What an interrupted DROP DATABASE left is no database any more. It is for
// servers that are thrown away afterwards.
func LetIn(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	const (
		closed = `SELECT pg_catalog.format('ALTER DATABASE %I ALLOW_CONNECTIONS true', datname) FROM pg_catalog.pg_database
			WHERE NOT datallowconn AND datconnlimit <> -2 AND datname <> 'template0'`
		open = "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn AND datconnlimit <> -2 AND datname <> 'template0' ORDER BY datname"
	)
	if err := each(ctx, conn, closed); err != nil {
		return nil, fmt.Errorf("let superusers into all databases: %w", err)
	}
	names, err := listed(ctx, conn, open)
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	return names, nil
}

// RollBackPrepared rolls back the prepared transactions of the database of a connection. Nobody is
// going to end them in a server that is thrown away afterwards, and whoever looks at what they have
// locked would wait for ever.
func RollBackPrepared(ctx context.Context, conn *pgx.Conn) error {
	const all = "SELECT pg_catalog.format('ROLLBACK PREPARED %L', gid) FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database()"
	if err := each(ctx, conn, all); err != nil {
		return fmt.Errorf("roll prepared transactions back: %w", err)
	}
	return nil
}

// each runs the statements that a query returns.
func each(ctx context.Context, conn *pgx.Conn, query string) error {
	statements, err := listed(ctx, conn, query)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return err
}

func listed(ctx context.Context, conn *pgx.Conn, query string) ([]string, error) {
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
