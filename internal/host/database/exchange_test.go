package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/exchange"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/testkit"
	"howdah/internal/testkit/s3test"
)

// exchanges is a database whose role leads to a bucket.
type exchanges struct {
	*world
	host *Host
	s3   *s3test.Server
	link *s3test.Link
	a    member.Assignment
	conn *pgx.Conn // of the master user
}

// newExchanges has the role open what begins with own/.
func newExchanges(t *testing.T, database string, features ...string) *exchanges {
	t.Helper()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	e := &exchanges{world: newWorld(t, ""), s3: s3test.Start(t)}
	e.link = e.s3.Link(t)
	e.host, _ = e.run(func(a *Host) {
		a.spares.Keep = 1
		a.exchange = exchange.New(exchange.Config{Ask: a.askBucket, Log: a.Log, Patience: 3 * time.Second})
	})
	e.Role(database, spec.BucketRole{
		Name: "own", Endpoint: e.link.Endpoint, Bucket: s3test.Bucket, Prefix: "own/", CA: e.s3.CA, AccessKey: s3test.AccessKey,
	}, s3test.Secret, features...)
	e.a = e.Assignment(database, 1)
	verifier, err := scram.Verifier("secret-password")
	e.Must(err)
	e.a.Cluster.Parameters = map[string]string{
		"shared_preload_libraries": "howdah", "logging_collector": "on", "log_filename": "postgresql.log.%Y-%m-%d-%H",
	}
	e.a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 1, Database: "works"}
	e.Assign(e.a)
	e.Awaits(e.a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.OwnerSerial != 1 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	e.conn = e.connect(e.a)
	if _, err := e.conn.Exec(t.Context(), "CREATE EXTENSION aws_s3 CASCADE"); hasCode(err, "0A000") || hasCode(err, "58P01") {
		testkit.Missing(t, "the extension aws_s3: scripts/install")
	} else {
		e.Must(err)
	}
	return e
}

// text runs a query that returns one text.
func (e *exchanges) text(sql string, args ...any) string {
	e.Helper()
	var text string
	if err := e.conn.QueryRow(e.Context(), sql, args...).Scan(&text); err != nil {
		e.Fatalf("%s: %v", sql, err)
	}
	return text
}

// refuses checks that a statement fails with a SQLSTATE, and with words.
func (e *exchanges) refuses(what, state, words, sql string, args ...any) {
	e.Helper()
	_, err := e.conn.Exec(e.Context(), sql, args...)
	if !hasCode(err, state) || !strings.Contains(err.Error(), words) {
		e.Errorf("%s: %v, want %s %q", what, err, state, words)
	}
}

func (e *exchanges) stored(name string) string {
	e.Helper()
	text, err := os.ReadFile(filepath.Join(e.s3.Dir, s3test.Bucket, name))
	e.Must(err)
	return string(text)
}

const (
	exportTo   = "SELECT rows_uploaded || ' ' || files_uploaded || ' ' || bytes_uploaded FROM aws_s3.query_export_to_s3($1, 'backups', $2, 'us-west-2', $3)"
	importFrom = "SELECT aws_s3.table_import_from_s3($1, $2, $3, 'backups', $4, 'us-west-2')"
)

// What RDS's guide does works: a query goes to a file in S3, and a file into a table, with the rights of
// whoever asks, and only where the role leads.
func TestADatabaseExportsAndImports(t *testing.T) {
	t.Parallel()
	e := newExchanges(t, "db-exchange", member.Export, member.Import)
	e.exec(e.conn, "CREATE TABLE t (i int, filler text); INSERT INTO t SELECT i, 'a,\"' || i || E'\\n' FROM generate_series(1, 1000) i; CREATE TABLE u (LIKE t)")

	if got := e.text(exportTo, "SELECT 1 AS a, 'x,y' AS b", "own/small.csv", "format csv, header true"); got != "1 1 12" {
		t.Errorf("a small export: %s", got)
	}
	if got := e.stored("own/small.csv"); got != "a,b\n1,\"x,y\"\n" {
		t.Errorf("it is %q", got)
	}
	for name, options := range map[string][2]string{
		"text": {"", ""}, "csv": {"FORMAT CSV, HEADER", "(FORMAT CSV, HEADER)"}, "binary": {"(format binary)", "(format binary)"},
		"old": {"format csv, delimiter '|'", "DELIMITER '|' CSV"},
	} {
		file := "own/" + name
		if got := e.text(exportTo, "TABLE t;", file, options[0]); !strings.HasPrefix(got, "1000 1 ") {
			t.Errorf("%s: export: %s", name, got)
		}
		want := fmt.Sprintf("1000 rows imported into relation \"u\" from file %s of %d bytes", file, len(e.stored(file)))
		if got := e.text(importFrom, "u", "", options[1], file); got != want {
			t.Errorf("%s: import: %q, want %q", name, got, want)
		}
		if n := e.text("WITH d AS (DELETE FROM u RETURNING *) SELECT count(*)::text FROM d JOIN t ON d.i = t.i AND d.filler = t.filler"); n != "1000" {
			t.Errorf("%s: %s rows came back as they were", name, n)
		}
	}
	if got := e.text("SELECT (aws_s3.query_export_to_s3('SELECT i, repeat(''x'', 1000) FROM generate_series(1, 20000) i', aws_commons.create_s3_uri('backups', 'own/big', 'eu-west-1'))).bytes_uploaded::text"); got != fmt.Sprint(len(e.stored("own/big"))) || len(got) != 8 {
		t.Errorf("an export in pieces: %s bytes", got)
	}
	e.exec(e.conn, "SELECT aws_s3.table_import_from_s3('public.u', 'i, \"filler\"', '', aws_commons.create_s3_uri('backups', 'own/big', 'eu-west-1'))")
	if n := e.text("SELECT count(DISTINCT i)::text FROM u WHERE length(filler) = 1000"); n != "20000" {
		t.Errorf("%s rows of the pieces", n)
	}
	e.attacks()
	e.ends()
}

// attacks are what a master user may try.
func (e *exchanges) attacks() {
	e.Helper()
	e.refuses("another bucket", "42501", "not for the bucket", "SELECT aws_s3.query_export_to_s3('SELECT 1', 'others', 'own/x')")
	e.refuses("outside of the prefix", "42501", "only for files", exportTo, "SELECT 1", "x", "")
	e.refuses("a way out", "22023", "", exportTo, "SELECT 1", "own/../x", "")
	e.refuses("a file that is not there", "58P01", "no such file", importFrom, "u", "", "", "own/nothing")
	for what, options := range map[string]string{
		"a program":          "format csv) TO PROGRAM 'id",
		"a second statement": "format csv); DROP TABLE t; --",
		"a file":             "format csv) TO '/tmp/x' (format csv",
	} {
		e.refuses(what, "42601", "", exportTo, "SELECT 1", "own/x", options)
		e.refuses(what, "42601", "", importFrom, "u", "", "("+strings.ReplaceAll(options, " TO ", " FROM ")+")", "own/small.csv")
	}
	e.refuses("a condition", "42601", "no options", importFrom, "u", "", "(format csv) WHERE pg_sleep(0) IS NULL", "own/small.csv")
	e.refuses("two queries", "42601", "single", exportTo, "SELECT 1; SELECT 2", "own/x", "")
	e.refuses("no query", "42601", "single", exportTo, "CREATE TABLE x ()", "own/x", "")
	e.refuses("SELECT INTO", "0A000", "", exportTo, "SELECT 1 INTO x", "own/x", "")
	e.refuses("what only superusers read", "42501", "pg_authid", exportTo, "TABLE pg_authid", "own/x", "")
	e.refuses("a catalog", "42501", "catalog", importFrom, "pg_authid", "", "", "own/small.csv")
	e.refuses("an export in an export", "0A000", "cannot export", exportTo, "SELECT aws_s3.query_export_to_s3('SELECT 1', 'backups', 'own/y')", "own/x", "")
	e.refuses("a key of one's own", "0A000", "credentials", "SELECT aws_s3.table_import_from_s3('u', '', '', 'backups', 'own/x', 'r', 'AK', 'SK')")
	e.refuses("another socket", "55P02", "", "SET howdah.agent_socket = '/tmp/x'")
	e.exec(e.conn, "CREATE ROLE plain; GRANT plain TO CURRENT_USER; GRANT USAGE ON SCHEMA aws_s3 TO plain; GRANT ALL ON SCHEMA public TO plain; CREATE TABLE secrets (a int); CREATE TABLE own (a int, b text); ALTER TABLE own OWNER TO plain; SET ROLE plain")
	e.refuses("another one's table", "42501", "secrets", exportTo, "TABLE secrets", "own/x", "")
	e.refuses("into another one's table", "42501", "secrets", importFrom, "secrets", "", "", "own/small.csv")
	if got := e.text(importFrom, "own", "", "(format csv, header)", "own/small.csv"); !strings.HasPrefix(got, "1 rows") {
		e.Errorf("a plain user: %s", got)
	}
	e.exec(e.conn, "RESET ROLE")
	for _, name := range []string{"own/x", "own/y", "x"} {
		if _, err := os.Stat(filepath.Join(e.s3.Dir, s3test.Bucket, name)); err == nil {
			e.Errorf("%s is there", name)
		}
	}
	// The platform does not call it for somebody.
	e.exec(e.conn, "CREATE VIEW leak AS SELECT rows_uploaded FROM aws_s3.query_export_to_s3('TABLE pg_authid', 'backups', 'own/leak')")
	config, err := dial.AdminConfig(e.host.Agent, e.a)
	e.Must(err)
	config.Database = "works"
	admin, err := pgx.ConnectConfig(e.Context(), config)
	e.Must(err)
	defer admin.Close(context.WithoutCancel(e.Context()))
	if _, err := admin.Exec(e.Context(), "TABLE public.leak"); !hasCode(err, "42501") {
		e.Errorf("the platform exports: %v", err)
	}
}

// ends are statements that come to no good end: nothing hangs, and nothing is half there.
func (e *exchanges) ends() {
	e.Helper()
	const endless = "SELECT aws_s3.query_export_to_s3('SELECT repeat(''x'', 1000), pg_sleep(0.001) FROM generate_series(1, 10000000)', 'backups', 'own/endless')"
	e.exec(e.conn, "SET statement_timeout = '1s'")
	e.refuses("a cancel", "57014", "", endless)
	e.refuses("an error in the query", "22012", "", exportTo, "SELECT i, 1 / (i - 100000) FROM generate_series(1, 200000) i", "own/broken", "")
	e.exec(e.conn, "RESET statement_timeout")
	e.exec(e.conn, "TRUNCATE u")
	e.refuses("a file that is no CSV of the table", "22P02", "", importFrom, "u", "", "(format csv)", "own/small.csv")

	pass := e.link.Hold()
	e.refuses("an S3 server that says nothing", "08006", "does not answer", exportTo, "SELECT 1", "own/held", "")
	e.refuses("the same", "08006", "does not answer", importFrom, "u", "", "", "own/big")
	ctx, cancel := context.WithTimeout(e.Context(), time.Second)
	defer cancel()
	began := time.Now()
	other := e.connect(e.a)
	if _, err := other.Exec(ctx, "SELECT aws_s3.table_import_from_s3('u', '', '', 'backups', 'own/big', '')"); err == nil {
		e.Error("an import from a server that says nothing ended well")
	}
	e.Logf("a cancel while nothing comes took %s", time.Since(began))
	pass()
	for _, name := range []string{"endless", "broken", "held"} {
		if _, err := os.Stat(filepath.Join(e.s3.Dir, s3test.Bucket, "own", name)); err == nil {
			e.Errorf("%s is there", name)
		}
	}
	if n := e.text("SELECT count(*)::text FROM u"); n != "0" {
		e.Errorf("%s rows of imports that failed", n)
	}
	testkit.Eventually(e.T, 20*time.Second, func() error {
		_, err := e.conn.Exec(e.Context(), exportTo, "SELECT 1", "own/after", "")
		return err
	})
}

// logs are read by SQL, and nothing else is.
func (e *exchanges) logs() {
	e.Helper()
	e.exec(e.conn, "CREATE EXTENSION log_fdw; CREATE SERVER log_server FOREIGN DATA WRAPPER log_fdw")
	testkit.Eventually(e.T, 20*time.Second, func() error {
		// The next hour has a file of its own.
		e.refuses("an error for the log", "22012", "", "SELECT 1 / 0 AS look_for_me")
		e.exec(e.conn, `DROP FOREIGN TABLE IF EXISTS "the log"; SELECT create_foreign_table_for_log_file('the log', 'log_server', max(file_name)) FROM list_postgres_log_files() WHERE file_size_bytes > 0`)
		if n := e.text(`SELECT count(*)::text FROM "the log" WHERE log_entry LIKE '%STATEMENT%look_for_me%'`); n == "0" {
			return errors.New("the log has no line of the statement")
		}
		return nil
	})
	if n := e.text(`SELECT count(*)::text FROM "the log" a JOIN (SELECT DISTINCT log_entry FROM "the log") b USING (log_entry)`); n != e.text(`SELECT count(*)::text FROM "the log"`) {
		e.Logf("%s lines, and more by now", n)
	}
	e.refuses("Patroni's log", "22023", "no log file", "SELECT create_foreign_table_for_log_file('p', 'log_server', 'patroni.log')")
	e.refuses("another file", "22023", "no log file", `ALTER FOREIGN TABLE "the log" OPTIONS (SET filename '../data/postgresql.conf')`)
	e.exec(e.conn, `ALTER FOREIGN TABLE "the log" OPTIONS (SET filename 'postgresql.log.2001-01-01-00')`)
	e.refuses("a file that is gone", "58P01", "could not open", `TABLE "the log"`)
}

// A role is for what it was given for, and for as long as the database has it.
func TestADatabaseWithoutARoleExportsNothing(t *testing.T) {
	t.Parallel()
	e := newExchanges(t, "db-roleless", member.Import)
	e.logs()
	e.refuses("an export with a role for imports", "42501", "has none for s3Export", exportTo, "SELECT 1", "own/x", "")
	e.exec(e.conn, "CREATE TABLE u (i int)")
	e.refuses("an import with the role", "58P01", "no such file", importFrom, "u", "", "", "own/nothing")
	e.Role("db-roleless", spec.BucketRole{Name: "own", Endpoint: e.link.Endpoint, Bucket: s3test.Bucket, CA: e.s3.CA, AccessKey: s3test.AccessKey}, "another secret")
	e.refuses("an import after the role was taken", "42501", "has none for s3Import", importFrom, "u", "", "", "own/nothing")
	e.Role("db-roleless", spec.BucketRole{Name: "own", Endpoint: e.link.Endpoint, Bucket: s3test.Bucket, CA: e.s3.CA, AccessKey: s3test.AccessKey}, "another secret", member.Export)
	e.refuses("a secret that is wrong", "08006", "lets the role in no more", exportTo, "SELECT 1", "own/x", "")
}
