// Package programs runs programs that others wrote against a Howdah, as the master user of an instance:
// what works with RDS for PostgreSQL has to work here. What fails there, too, is listed with the reason
// in testdata. `make test-programs` installs the programs (scripts/install-programs) and runs all of it.
package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/api/rds"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/rig"
)

// all is the Howdah that all tests use. Each has an instance of its own.
var all *rig.Rig

func TestMain(m *testing.M) {
	if !rig.Isolate() {
		fmt.Fprintln(os.Stderr, "these tests need root: they make a network namespace")
		os.Exit(1)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if err := pgtest.UsePrograms(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "howdah-programs-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	// PostgreSQL runs as another user, who has to get through.
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	binary := filepath.Join(dir, "howdah")
	if out, err := exec.Command("go", "build", "-o", binary, "howdah/cmd/howdah").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build: %w\n%s", err, out)
	}
	if all, err = rig.Start(context.Background(), rig.Options{Binary: binary, Dir: dir}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	return m.Run(), nil
}

// instance is a DB instance, and how its master user reaches it.
type instance struct {
	*testing.T
	name, host, port string
}

// given makes an instance that is gone when the test ends.
func given(t *testing.T, name string, multiAZ bool) *instance {
	t.Helper()
	return givenWith(t, name, func(in *rds.CreateDBInstanceMessage) { in.MultiAZ = &multiAZ })
}

// givenWith is given for an instance that change has altered.
func givenWith(t *testing.T, name string, change func(*rds.CreateDBInstanceMessage)) *instance {
	t.Helper()
	if err := all.AskWith(t.Context(), name, change); err != nil {
		t.Fatal(err)
	}
	if err := all.WaitStatus(t.Context(), name, "available", time.Minute); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in := &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &name, SkipFinalSnapshot: new(true)}
		ctx, cancel := context.WithTimeout(context.Background(), patience.For(time.Minute))
		defer cancel()
		if err := all.Call(ctx, "DeleteDBInstance", in, &rds.DeleteDBInstanceResult{}); err != nil {
			t.Error(err)
		}
	})
	shown, err := all.Instance(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return &instance{T: t, name: name, host: *shown.Endpoint.Address, port: fmt.Sprint(*shown.Endpoint.Port)}
}

// environ is the environment in which libpq connects to a database of the instance.
func (i *instance) environ(database string, more ...string) []string {
	env := append(os.Environ(), "PGHOST="+i.host, "PGPORT="+i.port, "PGUSER=app", "PGPASSWORD="+rig.Password, "PGDATABASE="+database,
		"PGSSLMODE=verify-full", "PGSSLROOTCERT="+all.Home.CAFile())
	return append(env, more...)
}

// jdbc is the URL of a database of the instance.
func (i *instance) jdbc(database string) string {
	return fmt.Sprintf("jdbc:postgresql://%s:%s/%s?sslmode=verify-full&sslrootcert=%s", i.host, i.port, database, all.Home.CAFile())
}

// sql runs statements that must not fail.
func (i *instance) sql(database, statements string) {
	i.Helper()
	conn := i.connect(database)
	defer conn.Close(i.Context())
	if _, err := conn.Exec(i.Context(), statements); err != nil {
		i.Fatalf("%s: %v", statements, err)
	}
}

// ask runs a query that answers with one text.
func (i *instance) ask(database, query string) (text string) {
	i.Helper()
	conn := i.connect(database)
	defer conn.Close(i.Context())
	if err := conn.QueryRow(i.Context(), query).Scan(&text); err != nil {
		i.Fatalf("%s: %v", query, err)
	}
	return text
}

func (i *instance) connect(database string) *pgx.Conn {
	i.Helper()
	config, err := all.Config(i.Context(), i.name)
	if err != nil {
		i.Fatal(err)
	}
	config.Database = database
	conn, err := pgx.ConnectConfig(i.Context(), config)
	if err != nil {
		i.Fatal(err)
	}
	return conn
}

// runs runs a program that must succeed in dir, and returns what it printed.
func (i *instance) runs(within time.Duration, dir string, env []string, program string, args ...string) string {
	i.Helper()
	out, err := i.tries(within, dir, env, program, args...)
	if err != nil {
		i.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, last(out, 8000))
	}
	return out
}

// tries runs a program with all that it starts, and ends it with them when it takes too long.
func (i *instance) tries(within time.Duration, dir string, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(i.Context(), patience.For(within))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func last(text string, size int) string { return text[max(len(text)-size, 0):] }

// installed returns the path of something that scripts/install-programs installs.
func installed(t *testing.T, parts ...string) string {
	t.Helper()
	dir := os.Getenv("HOWDAH_TEST_PROGRAMS")
	if dir == "" {
		testkit.Missing(t, "the programs: run make test-programs, or set HOWDAH_TEST_PROGRAMS to what scripts/install-programs --print-dir says")
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// testdata returns the full path of a file in testdata.
func testdata(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"testdata"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
