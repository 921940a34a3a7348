package tpcc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/own"
	"howdah/internal/lab/tpcc/layout"
	"howdah/internal/lab/tpcc/routine"
)

// version is of the tables, the data and the routines. Databases of another one are built again.
const version = 1

// mark begins the comment of our table warehouse. The rest is an About in JSON.
const mark = "howdah lab tpcc "

// marked is the table whose comment has the mark. It is made in one transaction with all others.
const marked = "warehouse"

// About is what its mark says of a database.
type About struct {
	Version    int       `json:"version"`
	Mode       Mode      `json:"mode"`
	Warehouses int       `json:"warehouses"`
	Seed       uint64    `json:"seed"`
	Unlogged   bool      `json:"unlogged,omitempty"`
	Fillfactor int       `json:"fillfactor,omitempty"`
	Began      time.Time `json:"began"`
	// Finished is when the build was. It is zero before, and if the build was broken off.
	Finished time.Time `json:"finished,omitzero"`
}

// markSQL asks for the comments on a schema and on the table in it: null if one of them is not there,
// and empty if it has none.
const markSQL = `
SELECT coalesce(obj_description(n.oid, 'pg_namespace'), ''),
	(SELECT coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class AS c WHERE c.relnamespace = n.oid AND c.relname = $2)
FROM pg_namespace AS n WHERE n.nspname = $1`

// Look returns what the mark of a database says. Errors are ErrNone and ErrForeign, and those of the
// server. A database that is not finished is no error here.
func Look(ctx context.Context, conn *pgx.Conn, schema string) (About, error) {
	var about About
	schema, err := checkSchema(schema)
	if err != nil {
		return about, err
	}
	var owner string
	var comment *string
	err = conn.QueryRow(ctx, markSQL, schema, marked).Scan(&owner, &comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return about, fmt.Errorf("schema %s: %w", schema, ErrNone)
	case err != nil:
		return about, fmt.Errorf("read the marks of schema %s: %w", schema, err)
	case owner != own.Mark:
		return about, fmt.Errorf("schema %s: %w", schema, ErrForeign)
	case comment == nil:
		return about, fmt.Errorf("schema %s: %w", schema, ErrNone)
	}
	text, ours := strings.CutPrefix(*comment, mark)
	if !ours || json.Unmarshal([]byte(text), &about) != nil {
		return About{}, fmt.Errorf("table %s.%s: %w", schema, marked, ErrForeign)
	}
	return about, nil
}

// Fits is whether a run of a mode with so many warehouses can use the database as it is.
func (a About) Fits(mode Mode, warehouses int) bool {
	return a.usable(mode) == nil && a.Warehouses == warehouses && !a.Unlogged && a.Fillfactor == 0
}

// usable returns an error if nothing can run on the database.
func (a About) usable(mode Mode) error {
	switch {
	case a.Finished.IsZero():
		return ErrUnfinished
	case a.Version != version:
		return fmt.Errorf("%w (it is of version %d, and this is %d)", ErrUnfinished, a.Version, version)
	case a.Mode != mode:
		return fmt.Errorf("%w: %s", ErrOtherMode, a.Mode)
	}
	return nil
}

// comment returns the statement that marks a database.
func (a About) comment(schema string) (string, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("write the mark of schema %s: %w", schema, err)
	}
	return fmt.Sprintf("COMMENT ON TABLE %s.%s IS '%s%s'", quoted(schema), marked, mark, strings.ReplaceAll(string(text), "'", "''")), nil
}

// Drop removes a database that Build made: its tables and routines. The schema stays, with whatever
// else the lab has in it. If something of others depends on the database, Drop fails and changes
// nothing. A database that is not there is no error. Other errors are ErrForeign and ErrBusy.
func Drop(ctx context.Context, conn *pgx.Conn, schema string) error {
	schema, err := checkSchema(schema)
	if err != nil {
		return err
	}
	release, err := claim(ctx, conn, schema, false)
	if err != nil {
		return err
	}
	defer release()
	return drop(ctx, conn, schema)
}

// drop needs a claim.
func drop(ctx context.Context, conn *pgx.Conn, schema string) error {
	if _, err := Look(ctx, conn, schema); errors.Is(err, ErrNone) {
		return nil
	} else if err != nil {
		return err
	}
	var statements []string
	for _, name := range routine.Names() {
		statements = append(statements, fmt.Sprintf("DROP ROUTINE IF EXISTS %s.%s", quoted(schema), name))
	}
	for _, table := range layout.Tables() {
		statements = append(statements, fmt.Sprintf("DROP TABLE IF EXISTS %s.%s", quoted(schema), table.Name))
	}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop the database in schema %s: %w", schema, detailed(err))
	}
	return nil
}

// claimClass is the first key of our advisory locks. The second one is a hash of the schema.
const claimClass = 0x486f7764

// claim keeps others from working on a schema: from building and dropping it, and if shared is false
// from running on it too. It holds as long as the session, or until it is released. Behind a pooler
// the session is not ours to lock, so nothing is claimed.
func claim(ctx context.Context, conn *pgx.Conn, schema string, shared bool) (release func(), err error) {
	pooled, err := isPooled(ctx, conn)
	if err != nil {
		return nil, err
	}
	if pooled {
		return func() {}, nil
	}
	suffix := ""
	if shared {
		suffix = "_shared"
	}
	var got bool
	err = conn.QueryRow(ctx, fmt.Sprintf("SELECT pg_try_advisory_lock%s($1, hashtext($2))", suffix), claimClass, schema).Scan(&got)
	if err != nil {
		return nil, fmt.Errorf("claim schema %s: %w", schema, err)
	}
	if !got {
		return nil, fmt.Errorf("schema %s: %w", schema, ErrBusy)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		// A session that is lost has released it.
		_, _ = conn.Exec(ctx, fmt.Sprintf("SELECT pg_advisory_unlock%s($1, hashtext($2))", suffix), claimClass, schema)
	}, nil
}

// isPooled is whether a pooler stands before the server. It gives its clients other numbers than those
// of the server's processes.
func isPooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return false, fmt.Errorf("ask who serves the session: %w", err)
	}
	return pid != conn.PgConn().PID(), nil
}
