package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/host/tree"
	model "howdah/internal/model/backup"
)

// taking makes of a server that was just restored what somebody wants to have of it. Nothing in it is
// asked to run with a superuser's rights that a user may have made.
type taking struct {
	*scratch
	asked model.Downloading
	note  *model.DownloadNote
}

func (t *taking) do(ctx context.Context, conn *pgx.Conn) error {
	if t.asked.Form == model.Dump {
		// The data are thrown away once they are dumped.
		if _, err := postgres.LetIn(ctx, conn); err != nil {
			return err
		}
	}
	if err := t.look(ctx, conn); err != nil {
		return fmt.Errorf("look at what was restored: %w", err)
	}
	if t.asked.Form == model.Dump {
		return t.dump(ctx, conn.Config())
	}
	switch {
	case t.asked.Verifiers:
		return nil
	case t.note.Prepared > 0:
		return job.Final(errKept)
	}
	if err := forgetVerifiers(ctx, conn); err != nil {
		return fmt.Errorf("remove the verifiers of passwords: %w", err)
	}
	return nil
}

// look finds out what whoever fetches it has to know.
func (t *taking) look(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SET search_path = pg_catalog"); err != nil {
		return err
	}
	texts := func(sql string) ([]string, error) {
		rows, err := conn.Query(ctx, sql, superuser)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[string])
	}
	var err error
	if t.note.Logins, err = texts("SELECT rolname::text FROM pg_catalog.pg_roles WHERE rolcanlogin OR rolname = $1 ORDER BY 1"); err != nil {
		return err
	}
	t.note.Databases, err = texts("SELECT datname::text FROM pg_catalog.pg_database WHERE datallowconn AND datconnlimit <> -2 AND datname NOT IN ($1, 'template1') ORDER BY 1")
	if err != nil {
		return err
	}
	if t.asked.Only != "" && !slices.Contains(t.note.Databases, t.asked.Only) {
		return job.Final(fmt.Errorf("%w %q: it has %s", errNoDatabase, t.asked.Only, strings.Join(t.note.Databases, ", ")))
	}
	const more = `SELECT (SELECT count(*) FROM pg_catalog.pg_prepared_xacts)::int,
		EXISTS (SELECT FROM pg_catalog.pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global'))`
	return conn.QueryRow(ctx, more).Scan(&t.note.Prepared, &t.note.Tablespaces)
}

var errNoDatabase = errors.New("the snapshot has no database")

// forgetVerifiers removes the verifiers of all passwords, also from the pages where they were. WAL
// that has them is thrown away with the identity.
func forgetVerifiers(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT pg_catalog.format('ALTER ROLE %I PASSWORD NULL', rolname) FROM pg_catalog.pg_authid WHERE rolpassword IS NOT NULL")
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	// An earlier try may have been killed between the two.
	for _, statement := range append(all, "VACUUM FULL pg_catalog.pg_authid") {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// errKept says that rows which a statement replaces stay in their file, because a transaction that is
// prepared may have to see them. If that has changed a role itself, it would even be waited for.
var errKept = errors.New("passwords cannot be removed from a snapshot with prepared transactions: download it --with-passwords, or --format dump")

// settle ends what holds locks in a database, for which a dump would wait.
func settle(ctx context.Context, config *pgx.ConnConfig, database string) error {
	config.Database = database
	config.RuntimeParams["statement_timeout"] = "0" // whatever was set for the database
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return postgres.RollBackPrepared(ctx, conn)
}

// dump has pg_dumpall and pg_dump write what they find, into a directory that is not whole yet.
func (t *taking) dump(ctx context.Context, config *pgx.ConnConfig) error {
	part := filepath.Join(filepath.Dir(t.request.Dir), partDump)
	err := t.user.Do(func() error {
		if err := os.RemoveAll(part); err != nil {
			return err
		}
		return os.MkdirAll(filepath.Join(part, "databases"), 0o700)
	})
	if err != nil {
		return fmt.Errorf("make room for a dump: %w", err)
	}
	globals := []string{"--globals-only", "--no-tablespaces", "--database=" + superuser, "--file=" + filepath.Join(part, model.GlobalsName)}
	if !t.asked.Verifiers {
		globals = append(globals, "--no-role-passwords")
	}
	if err := t.tool(ctx, "pg_dumpall", globals...); err != nil {
		return err
	}
	names := t.note.Databases
	if t.asked.Only != "" {
		names = []string{t.asked.Only}
	}
	t.note.Dirs = map[string]string{}
	for n, name := range names {
		t.call.Progress(int64(n), int64(len(names)), "databases dumped")
		if err := settle(ctx, config.Copy(), name); err != nil {
			return fmt.Errorf("prepare the dump of %s: %w", name, err)
		}
		dir := dirOf(name, n)
		err := t.tool(ctx, "pg_dump", "--format=directory", "--jobs="+strconv.Itoa(dumpJobs), "--no-tablespaces",
			"--file="+filepath.Join(part, "databases", dir), "--dbname=dbname='"+quoted.Replace(name)+"'")
		if err != nil {
			return err
		}
		t.note.Dirs[name] = "databases/" + dir
	}
	t.call.Progress(int64(len(names)), int64(len(names)), "databases dumped")
	return nil
}

// dumpJobs is how many tables are dumped at a time.
const dumpJobs = 2

// quoted escapes a value of a connection string.
var quoted = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// dirOf is the directory of the dump of a database: its name, if that is one for a file.
func dirOf(name string, n int) string {
	if plainName.MatchString(name) {
		return name
	}
	return fmt.Sprintf("%d-%.100s", n+1, url.QueryEscape(name))
}

// tool runs a program of PostgreSQL's on the server, as the user of the data.
func (t *taking) tool(ctx context.Context, name string, args ...string) error {
	r := t.request
	// Whatever was set for the role or for a database.
	options := "-c role=none -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 -c idle_session_timeout=0"
	if r.Install.Major >= 17 {
		options += " -c transaction_timeout=0"
	}
	command := backup.Command{Path: r.Install.Program(name), Args: args, Env: []string{
		"PGHOST=" + r.SocketDir, "PGPORT=" + strconv.Itoa(r.Port), "PGUSER=" + r.Superuser, "PGSSLMODE=disable", "HOME=" + r.Dir,
		"PGOPTIONS=" + options,
	}}
	var last []string
	exit, err := t.call.Process(ctx, t.program(strings.ReplaceAll(name, "_", "-"), command, func(line string) {
		if last = append(last, line); len(last) > 3 {
			last = last[1:]
		}
	}))
	if err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	if exit.Signal != 0 || exit.Code != 0 {
		return fmt.Errorf("%s: %s", name, endText(exit, last)) //nolint:err113 // it says why in its own words
	}
	return nil
}

func endText(exit proc.Exit, last []string) string {
	if exit.Signal != 0 {
		return "it was killed (" + exit.Signal.String() + ")"
	}
	return strings.Join(last, " ")
}

// whole puts a dump in its place: nothing of it changes any more.
func (s *scratch) whole() error {
	own := filepath.Dir(s.request.Dir)
	if err := tree.Sync(own); err != nil {
		return err
	}
	err := s.user.Do(func() error { return os.Rename(filepath.Join(own, partDump), filepath.Join(own, dumpDir)) })
	if err != nil {
		return fmt.Errorf("put the dump in its place: %w", err)
	}
	return tree.Sync(own)
}
