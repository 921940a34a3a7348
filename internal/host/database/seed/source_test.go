package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/pgbackrest"
	modelbackup "howdah/internal/model/backup"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/sourcetest"
)

// TestMain makes the data of a standby where a test has started this program as Patroni would.
func TestMain(m *testing.M) {
	if text := os.Getenv("HOWDAH_TEST_SEED"); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// told is what a child is told.
type told struct {
	Order      string // path of it
	Basebackup string // program
	Args       []string
	Patience   Patience
	KillAt     string // the step at which it kills itself
}

func child(text string) error {
	var w told
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return err
	}
	at := func(step string) {
		fmt.Fprintln(os.Stderr, "step", step)
		if step == w.KillAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return run(context.Background(), Maker{Patience: w.Patience, Log: log, at: at}, w.Order, w.Basebackup, w.Args)
}

// source is a database that archives to a repository of pgBackRest's.
type source struct {
	*sourcetest.Source
	engine  pgbackrest.Engine
	place   backup.Place
	program string // of this test, where everybody may start it
}

func newSource(t *testing.T) *source {
	t.Helper()
	engine, err := pgbackrest.Find()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	s := &source{Source: sourcetest.New(t), engine: engine}
	s.place = backup.Place{
		Database: "db-1", Dir: filepath.Join(s.Dir, "engine"), DataDir: s.Data, SocketDir: filepath.Join(s.Dir, "socket"), Port: 5432,
		User: "rdsadmin", DBName: "rdsadmin", Major: s.Install.Major, BinDir: s.Install.BinDir,
		Repositories: []backup.Access{{Name: "main", Path: filepath.Join(s.Dir, "backups", "db-1"), Passphrase: "a passphrase"}},
	}
	s.archives()
	for _, c := range engine.Create(s.place) {
		s.does(c)
	}
	s.program = filepath.Join(s.Dir, "seed.test")
	own, err := os.Executable()
	s.Must(err)
	copyProgram(t, own, s.program)
	return s
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}

// archives has the server that runs archive to the repository.
func (s *source) archives() {
	s.Helper()
	s.place.DataDir = s.Data
	s.Must(s.User.MakeDir(s.place.Dir))
	for _, f := range s.engine.Files(s.place) {
		s.Must(s.User.ReplaceFile(f.Path, f.Data, f.Mode))
	}
	plain := filepath.Join(s.Dir, "archive") // of which Promote restores
	command := "(test -f " + plain + "/%f || cp %p " + plain + "/%f) && " + s.engine.ArchiveCommand(s.place)
	s.Exec("ALTER SYSTEM SET archive_command = '" + strings.ReplaceAll(command, "'", "''") + "'")
	s.Exec("ALTER SYSTEM SET log_replication_commands = on")
	s.Exec("SELECT pg_reload_conf()")
}

// does runs a command of the engine's. It may have to wait for what is archived beside it.
func (s *source) does(c backup.Command) string {
	s.Helper()
	var out []byte
	testkit.Eventually(s.TB, time.Minute, func() (err error) {
		cmd := s.Command(c.Path, c.Args...)
		cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, c.Env...)
		if out, err = cmd.Output(); err != nil {
			err = fmt.Errorf("%s %q: %w: %s", c.Path, c.Args, err, out)
		}
		return err
	})
	return string(out)
}

// backup makes a backup, and returns what the repository says of it.
func (s *source) backup() backup.Info {
	s.Helper()
	s.does(s.engine.Backup(s.place, backup.Take{Repository: "main", Kind: modelbackup.Full, Operation: "x"}))
	list, err := s.engine.ParseList([]byte(s.does(s.engine.List(s.place, "main"))))
	s.Must(err)
	return list.Backups[len(list.Backups)-1]
}

// switches ends the current file of WAL, and waits until the repository has it.
func (s *source) switches() (name string) {
	s.Helper()
	s.Exec("SELECT pg_logical_emit_message(false, 'x', '')")
	name = sourcetest.Ask[string](s.Source, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
	s.Exec("SELECT pg_switch_wal()")
	testkit.Eventually(s.TB, time.Minute, func() error {
		if last := sourcetest.Ask[*string](s.Source, "SELECT last_archived_wal FROM pg_stat_archiver"); last == nil || *last < name {
			return fmt.Errorf("%s is not archived", name)
		}
		return nil
	})
	return name
}

const slot = "m2"

// holds makes the slot of the standby, as the primary's Patroni does once it sees the member.
func (s *source) holds() {
	s.Helper()
	s.Exec("SELECT pg_create_physical_replication_slot('" + slot + "', true)")
}

func (s *source) conninfo() string {
	return "host=" + filepath.Join(s.Dir, "socket") + " port=5432 user=rdsadmin dbname=postgres"
}

// member is a standby that has no data yet.
type member struct {
	*source
	dir string
	told
}

func (s *source) member(label string) *member {
	s.Helper()
	m := &member{source: s, dir: filepath.Join(hometest.Dir(s.TB), "m")}
	s.Must(s.User.GiveDir(m.dir))
	copied := filepath.Join(m.dir, "pg_basebackup")
	s.Must(os.WriteFile(copied, []byte("#!/bin/sh\necho \"$@\" > '"+m.dir+"/copied'\n"), 0o755))
	m.told = told{
		Order: Path(m.dir), Basebackup: copied, Args: []string{"--pgdata=" + m.data(), "-X", "stream", "--dbname=" + s.conninfo()},
		Patience: DefaultPatience,
	}
	m.orders(Order{Program: s.engine.Program, Place: s.place, Repository: "main", Label: label, Slot: slot})
	return m
}

// orders writes another order.
func (m *member) orders(o Order) {
	m.Helper()
	o.Place = Place(o.Place, m.dir)
	m.Must(Write(m.User, m.dir, o, m.engine.Files(o.Place)))
}

func (m *member) data() string { return filepath.Join(m.dir, "data") }

// makes has the data made, and returns what was printed.
func (m *member) makes() string {
	m.Helper()
	text, err := json.Marshal(m.told)
	m.Must(err)
	cmd := m.Command(m.program)
	cmd.Env = append(cmd.Env, "HOWDAH_TEST_SEED="+string(text))
	out, err := cmd.CombinedOutput()
	if failed, ok := err.(*exec.ExitError); err != nil && (!ok || failed.ExitCode() > 0) { //nolint:errorlint // as it is returned
		m.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// copied reports whether pg_basebackup was called.
func (m *member) copied() bool {
	text, err := os.ReadFile(filepath.Join(m.dir, "copied"))
	return err == nil && strings.HasPrefix(string(text), "--pgdata=")
}

// starts starts the standby as Patroni does, and waits until it streams. It returns what it has.
func (m *member) starts() string {
	m.Helper()
	socket := filepath.Join(m.dir, "socket")
	m.Must(m.User.GiveDir(socket))
	m.Must(m.User.ReplaceFile(filepath.Join(m.data(), "standby.signal"), nil, 0o600))
	m.Must(m.User.ReplaceFile(filepath.Join(m.data(), "postgresql.auto.conf"), fmt.Appendf(nil, `listen_addresses = ''
port = 5432
unix_socket_directories = '%s'
max_prepared_transactions = 5
max_connections = 37
fsync = off
track_commit_timestamp = on
recovery_target_timeline = latest
primary_slot_name = '%s'
primary_conninfo = '%s application_name=m2'
`, socket, slot, m.conninfo()), 0o600))
	cmd := m.Server("-D", m.data())
	log, err := os.Create(filepath.Join(m.dir, "log"))
	m.Must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	testkit.Start(m.TB, cmd)
	m.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
	})
	m.Keep("newest")
	b := &sourcetest.Source{TB: m.TB, Install: m.Install, User: m.User, Dir: m.dir, Data: m.data()}
	var rows string
	testkit.Eventually(m.TB, time.Minute, func() error {
		conn, err := b.Connect(m.Context())
		if err != nil {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%w\n%s", err, text)
		}
		defer conn.Close(m.Context())
		if err := conn.QueryRow(m.Context(), "SELECT string_agg(what, ' ' ORDER BY what) FROM public.kept").Scan(&rows); err != nil {
			return err
		}
		if !strings.Contains(rows, "newest") {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("it has %q\n%s", rows, text)
		}
		return nil
	})
	return rows
}

// sent reports whether the server that runs has sent its files to anybody.
func (s *source) sent() bool {
	logs, err := filepath.Glob(filepath.Join(s.Dir, "log-*"))
	s.Must(err)
	for _, path := range logs {
		text, err := os.ReadFile(path)
		s.Must(err)
		if strings.Contains(string(text), "BASE_BACKUP") {
			return true
		}
	}
	return false
}
