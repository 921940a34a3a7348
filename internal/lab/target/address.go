package target

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/lab/seats"
)

// Address is any PostgreSQL server, by its address.
type Address struct {
	Server address.Server
	// Writes says that the user lets the lab write beside data that are not its own.
	Writes bool
	held   *holder // from Open to Close
	system string  // which server it is
}

// Name is the server's host, port and database.
func (a *Address) Name() string { return a.Server.Name() }

// Able lists what the lab may do with any server.
func (a *Address) Able() []string {
	return []string{experiment.NeedWrites, experiment.NeedStandbys}
}

// At is the server.
func (a *Address) At() address.Server { return a.Server }

// Prepare checks that the lab may and can use the target, and makes the lab's schema. clients is how
// many connections the experiment needs at most.
func (a *Address) Prepare(ctx context.Context, clients int) error {
	return prepare(ctx, a.Server, clients, a.Writes)
}

func prepare(ctx context.Context, server address.Server, clients int, writes bool) error {
	conn, err := pgx.ConnectConfig(ctx, server.Config())
	if err != nil {
		return fmt.Errorf("connect to the target: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, check := range []func() error{
		func() error { return primary(ctx, conn) },
		func() error { return takes(ctx, conn, clients) },
		func() error { return mayWrite(ctx, conn, writes) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := makeSchema(ctx, conn); err != nil {
		return err
	}
	return finds(ctx, server)
}

func primary(ctx context.Context, conn *pgx.Conn) error {
	var standby bool
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery()").Scan(&standby); err != nil {
		return fmt.Errorf("ask the target what it is: %w", err)
	}
	if standby {
		return ErrStandby
	}
	return nil
}

// observers is how many connections there are besides those of clients.
const observers = 2

// takes checks that so many clients find a place besides those that are there.
func takes(ctx context.Context, conn *pgx.Conn, clients int) error {
	s, err := seats.Ask(ctx, conn)
	if err != nil {
		return err
	}
	if lacks := s.Without().Lacks(clients + observers); lacks != "" {
		return fmt.Errorf("%w: %s: raise max_connections, or use fewer clients", ErrClients, lacks)
	}
	return nil
}

// finds checks that sessions find the lab's schema as our own ones and pgbench's ask for it.
func finds(ctx context.Context, server address.Server) error {
	in := server.In(Schema)
	as, err := pgx.ParseConfig(in.Address()) // as libpq reads it
	if err != nil {
		return fmt.Errorf("read the address of the target: %w", err)
	}
	as.Password = in.Config().Password // which the address leaves out
	for _, config := range []*pgx.ConnConfig{in.Config(), as} {
		if err := findsAs(ctx, config); err != nil {
			return err
		}
	}
	return nil
}

// protocolViolation is the SQLSTATE by which poolers refuse what sessions ask for when they begin.
const protocolViolation = "08P01"

func findsAs(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == protocolViolation {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	if err != nil {
		return fmt.Errorf("connect to the target: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const looks = 2 // a pooler may give another session to each transaction
	for range looks {
		var found *string
		if err := conn.QueryRow(ctx, "SELECT pg_catalog.current_schema()::text").Scan(&found); err != nil {
			return fmt.Errorf("ask the target for the search path: %w", err)
		}
		if value(found) != Schema {
			return fmt.Errorf("%w: they look into %q", ErrPath, value(found))
		}
	}
	return nil
}

// mayWrite refuses a database in which anybody else has a table with rows.
func mayWrite(ctx context.Context, conn *pgx.Conn, writes bool) error {
	if writes {
		return nil
	}
	const sql = `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname)
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema', $1) AND n.nspname NOT LIKE 'pg\_%'
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
		ORDER BY 1 LIMIT 4`
	rows, err := conn.Query(ctx, sql, Schema)
	if err != nil {
		return fmt.Errorf("ask the target for its tables: %w", err)
	}
	foreign, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("ask the target for its tables: %w", err)
	}
	if len(foreign) > 0 {
		return fmt.Errorf("%w: %s. An empty database is best; with --allow-writes the lab makes its own tables beside them, in the schema %s", ErrForeign, strings.Join(foreign, ", "), Schema)
	}
	return nil
}

func makeSchema(ctx context.Context, conn *pgx.Conn) error {
	ours, err := isOurs(ctx, conn)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		// Both or neither: a schema without its mark would be somebody's.
		_, err = conn.Exec(ctx, "BEGIN; CREATE SCHEMA "+Schema+"; COMMENT ON SCHEMA "+Schema+" IS '"+mark+"'; COMMIT")
	case err == nil && !ours:
		return ErrSchema
	}
	if err != nil {
		return fmt.Errorf("make the lab's schema: %w", err)
	}
	return nil
}

func isOurs(ctx context.Context, conn *pgx.Conn) (ours bool, err error) {
	const sql = "SELECT coalesce(pg_catalog.obj_description(oid, 'pg_namespace') = $2, false) FROM pg_catalog.pg_namespace WHERE nspname = $1"
	err = conn.QueryRow(ctx, sql, Schema, mark).Scan(&ours)
	return ours, err
}

// Clear removes the lab's schema, and nothing else.
func (a *Address) Clear(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, a.Server.Config())
	if err != nil {
		return fmt.Errorf("connect to the target: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	ours, err := isOurs(ctx, conn)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil && !ours {
		return ErrSchema
	}
	if err == nil {
		_, err = conn.Exec(ctx, "DROP SCHEMA "+Schema+" CASCADE")
	}
	if err != nil {
		return fmt.Errorf("remove the lab's schema: %w", err)
	}
	return nil
}

// Describe says what the target is.
func (a *Address) Describe(ctx context.Context) (result.Target, error) {
	return describe(ctx, a.Server, result.Target{Name: a.Name(), Kind: "address"})
}

// describe adds what a server says of itself.
func describe(ctx context.Context, server address.Server, t result.Target) (result.Target, error) {
	conn, err := pgx.ConnectConfig(ctx, server.Config())
	if err != nil {
		return t, fmt.Errorf("connect to the target: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.version()").Scan(&t.Version); err != nil {
		return t, fmt.Errorf("ask the target for its version: %w", err)
	}
	return t, nil
}
