// Package whole looks whether all databases of a PostgreSQL server are whole: whether every entry of
// every table is in all its B-tree indexes, and whether tables and indexes have the structure that
// they should have. It uses PostgreSQL's own extension amcheck. Of indexes of other kinds it reads
// every page, so that the server compares their checksums.
//
// It makes extensions where they are missing, so it is for servers that are thrown away afterwards,
// such as one of a restore drill. It reads all of every table and index.
package whole

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
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

// Seen is how far a check is.
type Seen struct {
	Bytes, OfBytes int64 // of relations
	Relations, Of  int   // tables and indexes
}

// Options are how a check is made.
type Options struct {
	// Sessions is how many relations, or parts of large tables, are looked at at a time. 0: one.
	Sessions int
	// Progress, if set, is called after each part, by one goroutine at a time.
	Progress func(Seen)
	// Patience is how long one part may take that has so many bytes. nil: no bound.
	Patience func(bytes int64) time.Duration
}

// ErrStill says that a part was not looked at within its time. How much there is besides does not
// count: a check may take as long as it needs, if it does not stand still.
var ErrStill = errors.New("the check stands still")

// Check looks at all databases but template0. config is for a superuser, to any database;
// with each database its Database is replaced. An error says that not everything could be looked at;
// faults are no error.
//
// It has a superuser's sessions in databases of users. So it runs nothing of theirs with its rights:
// event triggers go before the first statement that one could follow. The server has to be started
// without those that follow a login (event_triggers = off, from PostgreSQL 17 on).
func Check(ctx context.Context, config *pgx.ConnConfig, opts Options) (Report, error) {
	config = quiet(config)
	names, err := databases(ctx, config)
	if err != nil {
		return Report{}, err
	}
	c := crew{config: config, Options: opts}
	for _, name := range names {
		parts, err := c.survey(ctx, name)
		if err != nil {
			return Report{}, fmt.Errorf("check database %s: %w", name, err)
		}
		c.parts = append(c.parts, parts...)
	}
	c.report.Databases = len(names)
	return c.work(ctx)
}

// quiet returns a configuration for sessions in which nothing holds of what was set for the role that
// would keep them from forgetting the rest: see databases.
func quiet(config *pgx.ConnConfig) *pgx.ConnConfig {
	own := config.Copy()
	own.RuntimeParams["search_path"] = "pg_catalog, pg_temp"
	own.RuntimeParams["default_transaction_read_only"], own.RuntimeParams["role"] = "off", "none"
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		own.RuntimeParams[name] = "0"
	}
	return own
}

// databases lists the databases. What their owners set for sessions there is forgotten before: it may
// be the role of another user, who may look at nothing, or that sessions end at once.
func databases(ctx context.Context, config *pgx.ConnConfig) ([]string, error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return nil, fmt.Errorf("check databases: %w", err)
	}
	defer conn.Close(ctx)
	for _, statement := range []string{"SET allow_system_table_mods = on", "DELETE FROM pg_catalog.pg_db_role_setting"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return nil, fmt.Errorf("forget what was set for databases: %w", err)
		}
	}
	return postgres.LetIn(ctx, conn)
}

// prepare ends what would hold the check up, and makes the extensions, in a schema that no user has put
// anything into. One of theirs may stand beside functions of theirs that have its names, so it goes, with
// all that depends on it.
//
// Event triggers of users would run their functions as this superuser, and the module that prevents
// that is not loaded here. DROP EVENT TRIGGER takes one at a time, and DELETE is followed by none.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	if err := postgres.RollBackPrepared(ctx, conn); err != nil {
		return err
	}
	for _, statement := range []string{
		"SET allow_system_table_mods = on", "DELETE FROM pg_catalog.pg_event_trigger", "SET allow_system_table_mods = off",
		"DROP EXTENSION IF EXISTS amcheck CASCADE", "DROP EXTENSION IF EXISTS pg_prewarm CASCADE", "DROP SCHEMA IF EXISTS howdah_check CASCADE",
		"CREATE SCHEMA howdah_check", "CREATE EXTENSION amcheck SCHEMA howdah_check", "CREATE EXTENSION pg_prewarm SCHEMA howdah_check",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
