package conformance

import (
	"bytes"
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

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

const (
	database = "db-CONFORMANCE"
	main     = "main"
	second   = "second"
	// within is enough for every command of a small database.
	within = time.Minute
)

// world is a database with an archive.
type world struct {
	*testing.T
	engine       backup.Engine
	server       *pgtest.Server
	place        backup.Place
	repositories map[string]Repository
}

// begin starts a server whose place has these repositories, and prepares them.
func begin(t *testing.T, c Config, names ...string) *world {
	t.Helper()
	w := unprepared(t, c, names...)
	for _, command := range w.engine.Create(w.place) {
		w.must(command)
	}
	return w
}

// unprepared does so, and leaves the repositories as they are.
func unprepared(t *testing.T, c Config, names ...string) *world {
	t.Helper()
	w := &world{
		T: t, engine: c.Engine, repositories: map[string]Repository{},
		server: pgtest.Start(t, pgtest.Options{Settings: "archive_mode = always\narchive_timeout = 0\n"}),
	}
	w.place = w.placeOf(w.server)
	for _, name := range names {
		w.repositories[name] = c.Open(t, w.server, name, database)
		w.place.Repositories = append(w.place.Repositories, w.repositories[name].Access)
	}
	w.write(w.server, w.place)
	archiveBy(w.server, w.engine.ArchiveCommand(w.place))
	return w
}

// placeOf is a place without repositories.
func (w *world) placeOf(s *pgtest.Server) backup.Place {
	w.Helper()
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		w.Fatal(err)
	}
	dir := filepath.Dir(s.DataDir())
	return backup.Place{
		Database: database, Dir: w.dir(s, "backup"), DataDir: s.DataDir(), SocketDir: dir, Port: int(s.Config().Port),
		User: s.User, DBName: s.Database, Major: install.Major, BinDir: install.BinDir,
	}
}

// dir makes a directory of the server's user.
func (w *world) dir(s *pgtest.Server, name string) string {
	w.Helper()
	dir := filepath.Join(filepath.Dir(s.DataDir()), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	s.Give(dir)
	return dir
}

// write puts an engine's files in their place.
func (w *world) write(s *pgtest.Server, p backup.Place) {
	w.Helper()
	for _, file := range w.engine.Files(p) {
		if file.Mode&0o077 != 0 {
			w.Errorf("others may read %s", file.Path)
		}
		if err := os.WriteFile(file.Path, file.Data, file.Mode); err != nil {
			w.Fatal(err)
		}
		s.Give(file.Path)
	}
}

// archiveBy has a server archive by this command from now on.
func archiveBy(s *pgtest.Server, command string) {
	s.Exec("ALTER SYSTEM SET archive_command = '" + strings.ReplaceAll(command, "'", "''") + "'")
	s.Exec("SELECT pg_reload_conf()")
}

func (w *world) exec(sql string) { w.Helper(); w.server.Exec(sql) }

// ask returns the one value that a query has.
func (w *world) ask(s *pgtest.Server, sql string) (value string) {
	w.Helper()
	if err := ask(w.Context(), s.Config(), sql, &value); err != nil {
		w.Fatal(err)
	}
	return value
}

func ask(ctx context.Context, config *pgx.ConnConfig, sql string, value *string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql).Scan(value)
}

// command is one as the member's user.
func (w *world) command(ctx context.Context, command backup.Command) *exec.Cmd {
	cmd := exec.CommandContext(ctx, command.Path, command.Args...)
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=/usr/bin:/bin"}, command.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: w.server.Credential()}
	return cmd
}

// run starts a command as the member's user.
func (w *world) run(command backup.Command) (out []byte, exit int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience.For(2*within))
	defer cancel()
	cmd := w.command(ctx, command)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	err := cmd.Run()
	w.secret(printed.String())
	if failed := new(exec.ExitError); errors.As(err, &failed) && ctx.Err() == nil {
		return printed.Bytes(), failed.ExitCode()
	}
	if err != nil {
		w.Fatalf("%s: %v\n%s", command.Path, err, printed.Bytes())
	}
	for _, argument := range command.Args {
		w.secret(argument)
	}
	return printed.Bytes(), 0
}

// secret fails if a text has one.
func (w *world) secret(text string) {
	w.Helper()
	for _, access := range w.place.Repositories {
		for _, secret := range []string{access.Secret, access.Passphrase} {
			if secret != "" && strings.Contains(text, secret) {
				w.Errorf("a secret is in %s", text)
			}
		}
	}
}

func (w *world) must(command backup.Command) []byte {
	w.Helper()
	out, exit := w.run(command)
	if exit != 0 {
		w.Fatalf("%s %s: exit code %d: %+v\n%s", command.Path, strings.Join(command.Args, " "), exit, w.engine.Failed(out, exit), out)
	}
	return out
}

// refused runs a command that must fail for good, with a reason that has these words.
func (w *world) refused(command backup.Command, words string) {
	w.Helper()
	out, exit := w.run(command)
	if exit == 0 {
		w.Fatalf("%v was not refused:\n%s", command.Args, out)
	}
	failure := w.engine.Failed(out, exit)
	if !failure.Final || !strings.Contains(failure.Reason, words) || strings.Contains(failure.Reason, "\n") {
		w.Errorf("exit code %d is told as %+v, and not with the words %q\n%s", exit, failure, words, out)
	}
}

// backup makes one, and returns its label.
func (w *world) backup(kind backupmodel.Kind, operation string) backup.Info {
	w.Helper()
	out := w.must(w.engine.Backup(w.place, backup.Take{Repository: main, Kind: kind, Operation: operation}))
	var last backup.Progress
	for line := range strings.Lines(string(out)) {
		if p, ok := w.engine.Progress(strings.TrimRight(line, "\n")); ok {
			if p.Done > p.Of || p.Done < 0 {
				w.Errorf("progress of %q is %+v", line, p)
			}
			last = p
		}
	}
	if last.Of == 0 {
		w.Errorf("there was no progress in\n%s", out)
	}
	return w.listed(operation)
}

// listed returns the backup of an operation.
func (w *world) listed(operation string) backup.Info {
	w.Helper()
	for _, info := range w.list().Backups {
		if info.Operation == operation {
			return info
		}
	}
	w.Fatalf("the backup of operation %s is not listed", operation)
	return backup.Info{}
}

func (w *world) list() backup.Listing {
	w.Helper()
	listing, err := w.engine.ParseList(w.must(w.engine.List(w.place, main)))
	if err != nil {
		w.Fatal(err)
	}
	return listing
}

// switchWAL ends a file of WAL that has something in it, and returns its name.
func (w *world) switchWAL() string {
	w.Helper()
	w.exec("SELECT pg_logical_emit_message(true, 'conformance', 'x')")
	name := w.ask(w.server, "SELECT pg_walfile_name(pg_switch_wal())")
	// A standby has the file once there is something behind it.
	w.exec("SELECT pg_logical_emit_message(true, 'conformance', 'x')")
	return name
}

// ready lists the files of WAL that wait.
func ready(t testing.TB, s *pgtest.Server) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.DataDir(), "pg_wal/archive_status/*.ready"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = strings.TrimSuffix(filepath.Base(names[i]), ".ready")
	}
	return names
}

// archived waits until a server has nothing left to archive.
func (w *world) archived(s *pgtest.Server) {
	w.Helper()
	testkit.Eventually(w, within, func() error {
		if names := ready(w, s); len(names) > 0 {
			said, _ := os.ReadFile(filepath.Join(filepath.Dir(s.DataDir()), "backup", backup.Failing))
			return fmt.Errorf("%v wait: %s", names, said)
		}
		return nil
	})
}
