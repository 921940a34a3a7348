// Package tpcc is a load of the TPC-C family for any PostgreSQL. It builds the database, runs virtual
// users against it, and checks that the database is consistent afterwards.
//
// It is derived from TPC-C 5.11 in the form that HammerDB made usual. Its results are new orders a
// minute (NOPM) and transactions a minute (TPM). They are no tpmC, and must not be compared with any.
//
// The compatible mode does what HammerDB's procedures do, departures from TPC-C included, so that its
// NOPM may be compared with HammerDB's. The specification mode keeps to the rules that HammerDB leaves
// out. A database is of one mode, and is not used in the other.
//
// All of it stays in the lab's schema, which has the lab's mark: see package own. Nothing here changes a
// schema without it, or a table warehouse that Build did not make. What else is in the schema stays.
package tpcc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/lab/own"
	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/layout"
	"howdah/internal/lab/tpcc/meter"
)

// What the parts of this package share, under the names that its users have for them.
type (
	Mode       = form.Mode
	Reach      = form.Reach
	Call       = form.Call
	Kind       = form.Kind
	Table      = layout.Table
	KindResult = meter.Kind
	Second     = meter.Second
)

const (
	Compatible    = form.Compatible
	Specification = form.Specification
	Procedures    = form.Procedures
	ClientSQL     = form.ClientSQL
	NewOrder      = form.NewOrder
)

// DefaultSchema is where the database is if nobody says otherwise.
const DefaultSchema = own.Schema

var (
	// ErrOption is an option that cannot be. What is wrong with it stands beside it.
	ErrOption = errors.New("option")
	// ErrNone is a schema that is not there, or that has no database of the load.
	ErrNone = errors.New("there is no TPC-C database: build it first")
	// ErrForeign is a schema that the lab did not make, or tables in it that Build did not make.
	ErrForeign = errors.New("it is not the lab's, and is left alone")
	// ErrUnfinished is a database whose build was broken off, or that another release built.
	ErrUnfinished = errors.New("the database is not finished: build it again")
	// ErrOtherMode is a database of the other mode.
	ErrOtherMode = errors.New("the database was built in the other mode")
	// ErrBusy is a schema that somebody else builds, drops or runs on.
	ErrBusy = errors.New("somebody else works on the schema")
	// ErrStandby is a server that only reads.
	ErrStandby = errors.New("the server is a standby and takes no writes")
	// ErrNoRoom is a server that does not take so many sessions.
	ErrNoRoom = errors.New("the server has no room for so many sessions")
)

// Layout returns the nine tables, with what a database that spreads them over shards needs to know of
// each.
func Layout() []Table { return layout.Tables() }

// schemaForm keeps to names that mean the same with and without quotes.
var schemaForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// checkSchema returns the name of a schema, or the default one.
func checkSchema(name string) (string, error) {
	if name == "" {
		return DefaultSchema, nil
	}
	if !schemaForm.MatchString(name) {
		return "", fmt.Errorf("%w schema: %q has others than small letters, digits and _, or is too long", ErrOption, name)
	}
	if strings.HasPrefix(name, "pg_") || name == "information_schema" {
		return "", fmt.Errorf("%w schema: %q is PostgreSQL's own", ErrOption, name)
	}
	return name, nil
}

// quoted returns a name as SQL has it.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// detailed adds to an error what the server said beside it.
func detailed(err error) error {
	var told *pgconn.PgError
	if errors.As(err, &told) && told.Detail != "" {
		return fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(told.Detail), " "))
	}
	return err
}

// endTime bounds what is done at the end, whatever else was broken off.
const endTime = 5 * time.Second

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	conn.Close(ctx)
}
