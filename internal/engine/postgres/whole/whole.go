// Package whole looks whether all databases of a PostgreSQL server are whole: whether every entry of
// every table is in all its B-tree indexes, and whether tables and indexes have the structure that
// they should have. It uses PostgreSQL's own extension amcheck.
//
// It makes that extension where it is missing, so it is for servers that are thrown away afterwards,
// such as one of a restore drill. It reads all of every table and index.
package whole

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Most is how many faults are described. Further ones are only counted.
const Most = 20

// Fault is something that is damaged.
type Fault struct {
	Database string `json:"database"`
	Relation string `json:"relation"` // schema.name
	Says     string `json:"says"`     // PostgreSQL's words, one line
}

func (f Fault) String() string { return f.Database + ", " + f.Relation + ": " + f.Says }

// Report is what was looked at, and what was found.
type Report struct {
	Databases int     `json:"databases"`
	Tables    int     `json:"tables"`
	Indexes   int     `json:"indexes"`
	Bytes     int64   `json:"bytes"` // of these relations
	Faults    int     `json:"faults"`
	Described []Fault `json:"described,omitempty"`
}

// Progress is called after each relation. Done and of are bytes in the database that is looked at.
type Progress func(database string, done, of int64)

// Check looks at all databases that can be logged in to. config is for a superuser, to any database;
// with each database its Database is replaced. An error says that not everything could be looked at;
// faults are no error.
//
// It is a superuser's session in databases of users. So it runs nothing of theirs with its rights:
// event triggers go before the first statement that one could follow. The server has to be started
// without those that follow a login (event_triggers = off, from PostgreSQL 17 on).
func Check(ctx context.Context, config *pgx.ConnConfig, progress Progress) (Report, error) {
	var report Report
	config = quiet(config)
	names, err := databases(ctx, config)
	if err != nil {
		return report, err
	}
	for _, name := range names {
		own := config.Copy()
		own.Database = name
		if err := checkDatabase(ctx, own, &report, progress); err != nil {
			return report, fmt.Errorf("check database %s: %w", name, err)
		}
		report.Databases++
	}
	return report, nil
}

// quiet returns a configuration for sessions in which nothing holds that was set for the role or for a
// database.
func quiet(config *pgx.ConnConfig) *pgx.ConnConfig {
	own := config.Copy()
	own.RuntimeParams["search_path"] = "pg_catalog, pg_temp"
	own.RuntimeParams["default_transaction_read_only"] = "off"
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		own.RuntimeParams[name] = "0"
	}
	return own
}

func databases(ctx context.Context, config *pgx.ConnConfig) ([]string, error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return nil, fmt.Errorf("check databases: %w", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn ORDER BY datname")
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// relation is a table, or an index.
type relation struct {
	OID   uint32
	Name  string
	Index bool
	Bytes int64
}

// relationsSQL lists what has a structure that amcheck knows. Tables come with their TOAST tables.
// Indexes that are not valid promise nothing. Unlogged ones are empty after a restore.
const relationsSQL = `SELECT c.oid, n.nspname || '.' || c.relname, c.relkind = 'i', pg_catalog.pg_relation_size(c.oid)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam
WHERE c.relpersistence = 'p' AND (
	c.relkind IN ('r', 'm', 't') AND a.amname = 'heap' OR
	c.relkind = 'i' AND a.amname = 'btree' AND i.indisvalid AND i.indisready AND i.indislive)
ORDER BY c.relkind = 'i', c.oid`

// The two questions. A fault that ends the index check is an error of the statement; those of a table
// are rows.
const (
	indexSQL = `SELECT howdah_check.bt_index_check($1::pg_catalog.oid::pg_catalog.regclass, true)`
	tableSQL = `SELECT 'block ' || coalesce(blkno::text, '?') || ', row ' || coalesce(offnum::text, '?') || ': ' || msg
FROM howdah_check.verify_heapam($1::pg_catalog.oid::pg_catalog.regclass, on_error_stop => true)`
)

func checkDatabase(ctx context.Context, config *pgx.ConnConfig, report *Report, progress Progress) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { conn.Close(ctx) }()
	if err := prepare(ctx, conn); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, relationsSQL)
	if err != nil {
		return fmt.Errorf("list relations: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
	if err != nil {
		return fmt.Errorf("list relations: %w", err)
	}
	var done, of int64
	for _, r := range all {
		of += r.Bytes
	}
	for _, r := range all {
		says, err := checkRelation(ctx, conn, r)
		if err != nil {
			return fmt.Errorf("check %s: %w", r.Name, err)
		}
		report.note(config.Database, r, says)
		done += r.Bytes
		if progress != nil {
			progress(config.Database, done, of)
		}
	}
	return nil
}

// prepare makes amcheck, in a schema that no user has put anything into. An amcheck of theirs may
// stand beside functions of theirs that have its names, so it goes, with all that depends on it.
//
// Event triggers of users would run their functions as this superuser, and the module that prevents
// that is not loaded here. DROP EVENT TRIGGER takes one at a time, and DELETE is followed by none.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	for _, statement := range []string{
		"SET allow_system_table_mods = on", "DELETE FROM pg_catalog.pg_event_trigger", "SET allow_system_table_mods = off",
		"DROP EXTENSION IF EXISTS amcheck CASCADE", "DROP SCHEMA IF EXISTS howdah_check CASCADE",
		"CREATE SCHEMA howdah_check", "CREATE EXTENSION amcheck SCHEMA howdah_check",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// checkRelation returns what is wrong with a relation.
func checkRelation(ctx context.Context, conn *pgx.Conn, r relation) (says []string, err error) {
	query := tableSQL
	if r.Index {
		query = indexSQL
	}
	rows, err := conn.Query(ctx, query, r.OID)
	if err == nil {
		if r.Index {
			rows.Close() // it answers nothing
			err = rows.Err()
		} else {
			says, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
	}
	if found, ok := damage(err); ok {
		return append(says, found), nil
	}
	return says, err
}

// damage returns what an error says of the data: that they, an index or a page are damaged, or that a
// file of them cannot be read. Any other error says that the check itself went wrong.
func damage(err error) (says string, ok bool) {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return "", false
	}
	// data_corrupted, index_corrupted; undefined_file and io_error of a file that is missing or short.
	if !slices.Contains([]string{"XX001", "XX002", "58P01", "58030"}, refused.Code) {
		return "", false
	}
	text := refused.Message
	if refused.Detail != "" {
		text += ": " + refused.Detail
	}
	return strings.Join(strings.Fields(text), " "), true
}

func (r *Report) note(database string, of relation, says []string) {
	if of.Index {
		r.Indexes++
	} else {
		r.Tables++
	}
	r.Bytes += of.Bytes
	r.Faults += len(says)
	for _, s := range says {
		if len(r.Described) < Most {
			r.Described = append(r.Described, Fault{Database: database, Relation: of.Name, Says: s})
		}
	}
}
