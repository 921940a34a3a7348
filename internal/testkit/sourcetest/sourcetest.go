// Package sourcetest makes databases that are backed up, for tests of restores: with an archive, a
// history of commits, and an engine that needs no program of its own.
package sourcetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/model/lsn"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/pgversion"
)

// source is a database that is backed up, with its archive. Its server trusts everybody on its
// socket.
type Source struct {
	testing.TB
	Install postgres.Install
	User    *owner.User
	Dir     string // has all below
	Data    string // of the server that runs
	running *exec.Cmd
	// promotes is called before the server that runs is promoted.
	promotes []func(data string)
	servers  int
}

// PlainUser is who runs PostgreSQL, which refuses to run as root.
func PlainUser(t testing.TB) *owner.User {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		testkit.Missing(t, "the user postgres: run scripts/install")
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if errUID != nil || errGID != nil {
		t.Fatal(errUID, errGID)
	}
	return &owner.User{Name: u.Username, UID: uid, GID: gid}
}

func (s *Source) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// New makes a database with an archive, and starts its server.
func New(t testing.TB) *Source {
	t.Helper()
	return NewIn(t, hometest.Dir(t))
}

// NewIn is New, below a directory that others may pass through. Paths of sockets are short: so is
// that of the directory.
func NewIn(t testing.TB, dir string) *Source {
	t.Helper()
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		testkit.Missing(t, fmt.Sprintf("PostgreSQL %d", pgversion.Major()))
	}
	s := &Source{TB: t, Install: install, User: PlainUser(t), Dir: filepath.Join(dir, "s")}
	for _, dir := range []string{"", "archive", "backups", "socket"} {
		s.Must(os.Mkdir(filepath.Join(s.Dir, dir), 0o700))
		if s.User != nil {
			s.Must(os.Chown(filepath.Join(s.Dir, dir), s.User.UID, s.User.GID))
		}
	}
	t.Cleanup(s.tell)
	s.Data = filepath.Join(s.Dir, "first")
	s.Must(postgres.Prepare(t.Context(), install, s.User, s.Data))
	s.Up()
	t.Cleanup(s.Kill)
	s.Exec("CREATE TABLE public.kept (what text)")
	return s
}

// tell shows the ends of the servers' logs if the test has failed.
func (s *Source) tell() {
	if !s.TB.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(s.Dir, "log-*"))
	for _, log := range logs {
		if text, err := os.ReadFile(log); err == nil {
			s.TB.Logf("%s:\n%s", filepath.Base(log), text[max(0, len(text)-4<<10):])
		}
	}
}

// Command runs as the user of the server.
func (s *Source) Command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if s.User != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.User.UID), Gid: uint32(s.User.GID)}
	}
	return cmd
}

// Server is a command for testkit.Start: a server with these arguments.
func (s *Source) Server(args ...string) *exec.Cmd {
	cmd := s.Command(s.Install.Program("postgres"), args...)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return cmd
}

// Up starts the server on s.Data.
func (s *Source) Up() {
	s.Helper()
	s.servers++
	archive := filepath.Join(s.Dir, "archive")
	settings := fmt.Sprintf(`listen_addresses = ''
port = 5432
unix_socket_directories = '%[1]s/socket'
archive_mode = on
archive_command = 'test -f %[2]s/%%f || { cp %%p %[2]s/%%f.new && mv %[2]s/%%f.new %[2]s/%%f; }'
restore_command = 'cp %[2]s/%%f %%p'
track_commit_timestamp = on
max_prepared_transactions = 5
max_connections = 37
fsync = off
`, s.Dir, archive)
	s.put("postgresql.auto.conf", settings)
	s.put("pg_hba.conf", "local all all trust\nlocal replication all trust\n")
	s.put("patroni.dynamic.json", "{}")
	s.start(false)
}

// start starts the server, and waits until it answers, as a standby or not.
func (s *Source) start(standby bool) {
	s.Helper()
	cmd := s.Server("-D", s.Data)
	log, err := os.Create(filepath.Join(s.Dir, fmt.Sprintf("log-%d", s.servers)))
	s.Must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	testkit.Start(s.TB, cmd)
	s.running = cmd
	testkit.Eventually(s.TB, time.Minute, func() error {
		conn, err := s.connect()
		if err != nil {
			return err
		}
		defer conn.Close(s.Context())
		var recovers bool
		if err := conn.QueryRow(s.Context(), "SELECT pg_is_in_recovery()").Scan(&recovers); err != nil || recovers != standby {
			s.promote(conn)
			return fmt.Errorf("recovers %v, %w", recovers, err)
		}
		return nil
	})
}

// promote promotes a server that has reached its target.
func (s *Source) promote(conn *pgx.Conn) {
	var paused bool
	if err := conn.QueryRow(s.Context(), "SELECT pg_is_wal_replay_paused()").Scan(&paused); err != nil || !paused {
		return
	}
	for _, f := range s.promotes {
		f(s.Data)
	}
	s.promotes = nil
	_, _ = conn.Exec(s.Context(), "SELECT pg_promote(false)")
}

func (s *Source) put(name, text string) {
	s.Helper()
	s.Must(s.User.ReplaceFile(filepath.Join(s.Data, name), []byte(text), 0o600))
}

// kill ends the server as a loss of power would.
func (s *Source) Kill() {
	if s.running == nil {
		return
	}
	pid, err := postgres.Postmaster(s.Data)
	if err == nil && pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
	}
	_ = s.running.Wait()
	s.running = nil
	_ = postgres.RemoveShared(s.Data)
}

func (s *Source) connect() (*pgx.Conn, error) { return s.Connect(s.Context()) }

// Connect connects to the server as a superuser.
func (s *Source) Connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, "host="+filepath.Join(s.Dir, "socket")+" port=5432 user=rdsadmin dbname=rdsadmin")
}

func (s *Source) Exec(sql string) {
	s.Helper()
	conn, err := s.connect()
	s.Must(err)
	defer conn.Close(s.Context())
	_, err = conn.Exec(s.Context(), sql)
	s.Must(err)
}

func Ask[T any](s *Source, sql string, args ...any) (value T) {
	s.Helper()
	conn, err := s.connect()
	s.Must(err)
	defer conn.Close(s.Context())
	s.Must(conn.QueryRow(s.Context(), sql, args...).Scan(&value))
	return value
}

// commit is one that was kept: when, where its record ends, and its transaction id.
type Commit struct {
	At  time.Time
	End lsn.LSN
	XID string
}

// keep commits a row.
func (s *Source) Keep(what string) Commit {
	s.Helper()
	conn, err := s.connect()
	s.Must(err)
	defer conn.Close(s.Context())
	var c Commit
	s.Must(conn.QueryRow(s.Context(), "INSERT INTO public.kept VALUES ($1) RETURNING pg_current_xact_id()::text", what).Scan(&c.XID))
	var end string
	s.Must(conn.QueryRow(s.Context(), "SELECT pg_xact_commit_timestamp($1::text::xid), pg_current_wal_insert_lsn()::text", c.XID).Scan(&c.At, &end))
	c.End, err = lsn.Parse(end)
	s.Must(err)
	c.At = c.At.UTC()
	return c
}

// archive has all WAL until now archived.
func (s *Source) Archive() {
	s.Helper()
	s.Exec("SELECT pg_logical_emit_message(false, 'x', '')")
	name := Ask[string](s, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
	s.Exec("SELECT pg_switch_wal()")
	testkit.Eventually(s.TB, time.Minute, func() error {
		_, err := os.Stat(filepath.Join(s.Dir, "archive", name))
		return err
	})
}

// backup makes a backup with this label.
func (s *Source) Backup(label string) {
	s.Helper()
	s.run(s.Install.Program("pg_basebackup"), "-D", filepath.Join(s.Dir, "backups", label), "--no-sync", "-c", "fast", "-X", "none",
		"-d", "host="+filepath.Join(s.Dir, "socket")+" port=5432 user=rdsadmin")
}

func (s *Source) run(program string, args ...string) {
	s.Helper()
	if out, err := s.Command(program, args...).CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", filepath.Base(program), err, out)
	}
}

// Standby starts a standby of the server, which follows what listens below a directory; "": the
// server. It has all its history in its WAL.
func (s *Source) Standby(name, follows string) *Source {
	s.Helper()
	b := &Source{TB: s.TB, Install: s.Install, User: s.User, Dir: filepath.Join(filepath.Dir(s.Dir), name)}
	b.Data = filepath.Join(b.Dir, "data")
	for _, dir := range []string{"", "socket"} {
		s.Must(s.User.GiveDir(filepath.Join(b.Dir, dir)))
	}
	s.run(s.Install.Program("pg_basebackup"), "-D", b.Data, "--no-sync", "-c", "fast", "-X", "stream",
		"-d", "host="+filepath.Join(s.Dir, "socket")+" port=5432 user=rdsadmin")
	if follows == "" {
		follows = s.Dir
	}
	b.put("standby.signal", "")
	b.put("postgresql.auto.conf", fmt.Sprintf("listen_addresses = ''\nport = 5432\nunix_socket_directories = '%s/socket'\nmax_prepared_transactions = 5\n"+
		"max_connections = 37\nfsync = off\ntrack_commit_timestamp = on\nprimary_conninfo = 'host=%s/socket port=5432 user=rdsadmin'\n", b.Dir, follows))
	b.start(true)
	s.TB.Cleanup(b.Kill)
	return b
}

// promote ends the server, and has a copy of a backup replay the archive up to a position, and begin
// a new timeline there, as a standby does that is promoted. before is called before that.
func (s *Source) Promote(label string, at lsn.LSN, before ...func(data string)) {
	s.Helper()
	s.Kill()
	s.Data = filepath.Join(s.Dir, fmt.Sprintf("next-%d", s.servers))
	s.run("/bin/cp", "-a", filepath.Join(s.Dir, "backups", label), s.Data)
	s.put("recovery.signal", "")
	s.put("postgresql.conf", fmt.Sprintf("recovery_target_lsn = '%s'\nrecovery_target_action = pause\n", at))
	s.promotes = before
	s.Up()
}

// plain is an engine whose repository is a directory of copies.
type Plain struct {
	backup.Engine
	Dir string
}

func (p Plain) Files(place backup.Place) []backup.File {
	return []backup.File{{Path: filepath.Join(place.Dir, "secret"), Data: []byte("x"), Mode: 0o600}}
}

func (p Plain) Restore(place backup.Place, r backup.Restore) backup.Command {
	from := filepath.Join(p.Dir, "backups", r.Label)
	return backup.Command{Path: "/bin/sh", Args: []string{"-c", fmt.Sprintf("echo 1 of 2; cp -a %s/. %s && echo 2 of 2", from, place.DataDir)}}
}

func (p Plain) List(backup.Place, string) backup.Command {
	return backup.Command{Path: "/bin/sh", Args: []string{"-c", "ls " + p.Dir + "/backups; ls " + p.Dir + "/archive | sed 's/^/archived /'"}}
}

// Size is that of each backup.
const Size = 20000

func (p Plain) ParseList(out []byte) (list backup.Listing, err error) {
	for label := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(label), "archived "); ok {
			if len(name) == len("000000010000000000000001") {
				list.LastWAL = max(list.LastWAL, name)
			}
			continue
		}
		list.Backups = append(list.Backups, backup.Info{Label: strings.TrimSpace(label), Size: Size})
	}
	return list, nil
}

var plainProgress = regexp.MustCompile(`^(\d+) of (\d+)$`)

func (p Plain) Progress(line string) (backup.Progress, bool) {
	found := plainProgress.FindStringSubmatch(line)
	if found == nil {
		return backup.Progress{}, false
	}
	return backup.Progress{Done: int64(atoi(found[1])), Of: int64(atoi(found[2]))}, true
}

func (p Plain) Failed(out []byte, _ int) backup.Failure {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return backup.Failure{Reason: lines[len(lines)-1], Final: strings.Contains(string(out), "No such file")}
}

func (p Plain) Recovery(_ backup.Place, r backup.Restore) backup.Recovery {
	settings := map[string]string{
		"restore_command": "cp " + p.Dir + "/archive/%f %p", "recovery_target_action": "promote", "recovery_target_timeline": "latest",
	}
	if r.Timeline > 0 {
		settings["recovery_target_timeline"] = strconv.Itoa(r.Timeline)
	}
	switch t := r.Target; {
	case !t.Until.IsZero():
		settings["recovery_target_time"] = t.Until.UTC().Format("2006-01-02 15:04:05.999999+00")
	case t.LSN > 0:
		settings["recovery_target_lsn"] = t.LSN.String()
	case t.Before != "":
		settings["recovery_target_xid"], settings["recovery_target_inclusive"] = t.Before, "off"
	case !t.Newest:
		settings["recovery_target"] = "immediate"
	}
	return backup.Recovery{Signal: "recovery.signal", Settings: settings}
}

// CheckWAL compares with what the archive had when it was written: nothing keeps that, so all is well.
func (p Plain) CheckWAL(_ backup.Place, _ backup.Restore, name, to string) backup.Command {
	return backup.Command{Path: "/bin/cp", Args: []string{p.Dir + "/archive/" + name, to}}
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
