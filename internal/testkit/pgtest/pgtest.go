// Package pgtest runs plain PostgreSQL servers for tests, without Patroni. It is for tests that
// need a real server and no more.
package pgtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/identity/certs"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/pgversion"
)

// startTime is long enough for a start on a busy machine.
const startTime = 30 * time.Second

// Server is a running server that trusts everybody on loopback. It is gone when
// the test ends.
type Server struct {
	t        testing.TB
	dir      string
	program  string
	user     *syscall.Credential
	cmd      *exec.Cmd
	Addr     string // host:port
	Database string // to connect to, as User
	User     string
}

// Options say what a server is like. The zero value is a plain one.
type Options struct {
	Pair     *certs.Pair // with TLS, by this certificate
	Standby  bool        // in recovery until it is promoted
	Settings string      // more lines of postgresql.conf
}

// UsePrograms puts the programs of the version that tests use first in the PATH, for scripts and tests that
// run psql or pg_dump by name: those of an older release refuse to dump. Call it before any test.
func UsePrograms() error {
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		return err
	}
	return os.Setenv("PATH", install.BinDir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// Start makes a cluster with the database rdsadmin and the superuser rdsmon, and starts a server on
// it.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		testkit.Missing(t, fmt.Sprintf("PostgreSQL %d", pgversion.Major()))
	}
	s := &Server{
		t: t, dir: filepath.Join(hometest.Dir(t), "pg"), program: install.Program("postgres"), user: owner(t),
		Addr: testkit.FreeAddr(t), Database: "rdsadmin", User: "rdsmon",
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.give(s.dir)
	s.run("", install.Program("initdb"), "-D", s.data(), "-U", s.User, "-A", "trust", "--no-sync", "-E", "UTF8")
	s.run("CREATE DATABASE rdsadmin;\n", s.program, "--single", "-D", s.data(), "postgres")
	s.configure(o)
	s.Up()
	t.Cleanup(s.Kill)
	return s
}

// Follow makes a standby that follows the server under this name, and starts it.
func (s *Server) Follow(name string, o Options) *Server {
	s.t.Helper()
	standby := &Server{
		t: s.t, dir: filepath.Join(hometest.Dir(s.t), name), program: s.program, user: s.user,
		Addr: testkit.FreeAddr(s.t), Database: s.Database, User: s.User,
	}
	if err := os.Mkdir(standby.dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.give(standby.dir)
	config := s.Config()
	s.run("", filepath.Join(filepath.Dir(s.program), "pg_basebackup"), "-D", standby.data(), "--no-sync", "-c", "fast",
		"-d", fmt.Sprintf("host=%s port=%d user=%s", config.Host, config.Port, s.User))
	o.Standby = true
	o.Settings += fmt.Sprintf("primary_conninfo = 'host=%s port=%d user=%s application_name=%s'\n", config.Host, config.Port, s.User, name)
	standby.configure(o)
	standby.Up()
	s.t.Cleanup(standby.Kill)
	return standby
}

// Set adds lines to the configuration, for the next start.
func (s *Server) Set(lines string) {
	s.t.Helper()
	file, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(lines + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// owner returns the user that a server runs as. PostgreSQL refuses to run as root.
func owner(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		testkit.Missing(t, "the user postgres")
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	if errUID != nil || errGID != nil {
		t.Fatal(errUID, errGID)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// DataDir is the server's data directory. It lies in a directory of the server's user, as whom
// Credential starts programs; nil stands for whoever runs the test.
func (s *Server) DataDir() string { return s.data() }

// Credential is the user that the server runs as.
func (s *Server) Credential() *syscall.Credential { return s.user }

// Give makes a file or directory the server's own.
func (s *Server) Give(path string) { s.t.Helper(); s.give(path) }

func (s *Server) give(path string) {
	s.t.Helper()
	if s.user == nil {
		return
	}
	if err := os.Chown(path, int(s.user.Uid), int(s.user.Gid)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) run(stdin, program string, args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), program, args...)
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", filepath.Base(program), err, out)
	}
}

func (s *Server) configure(o Options) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	lines := fmt.Sprintf("listen_addresses = '%s'\nport = %s\nunix_socket_directories = '%s'\nfsync = off\n", host, port, s.dir) + o.Settings
	if o.Pair != nil {
		if err := o.Pair.Write(s.dir); err != nil {
			s.t.Fatal(err)
		}
		for _, name := range []string{certs.CertFile, certs.KeyFile, certs.CAFile} {
			s.give(filepath.Join(s.dir, name))
		}
		lines += fmt.Sprintf("ssl = on\nssl_cert_file = '%[1]s/tls.crt'\nssl_key_file = '%[1]s/tls.key'\nssl_ca_file = '%[1]s/ca.crt'\n", s.dir)
	}
	s.Set(lines)
	if o.Standby {
		signal := filepath.Join(s.data(), "standby.signal")
		if err := os.WriteFile(signal, nil, 0o600); err != nil {
			s.t.Fatal(err)
		}
		s.give(signal)
	}
}

// Up starts a server that does not run, and waits until it answers.
func (s *Server) Up() {
	s.t.Helper()
	// The context of the test does not end it. Kill does, and waits.
	s.cmd = exec.CommandContext(context.WithoutCancel(s.t.Context()), s.program, "-D", s.data())
	s.cmd.Dir = "/"
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Pdeathsig: syscall.SIGQUIT}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	testkit.Start(s.t, s.cmd)
	testkit.Eventually(s.t, startTime, func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		defer cancel()
		conn, err := pgx.ConnectConfig(ctx, s.Config())
		if err != nil {
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%w; it said:\n%s", err, said)
		}
		return conn.Close(ctx)
	})
}

// Kill ends the server at once, and waits for its end. It is idempotent.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	// The postmaster's immediate shutdown also ends its children. A SIGKILL would leave them for a
	// moment.
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	_ = s.cmd.Wait() // it says that it was told to end
	s.cmd = nil
}

// Config returns a configuration for connections without TLS.
func (s *Server) Config() *pgx.ConnConfig {
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", s.User, s.Addr, s.Database))
	if err != nil {
		s.t.Fatal(err)
	}
	return config
}

// Exec runs one statement.
func (s *Server) Exec(sql string, args ...any) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), startTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		s.t.Fatal(err)
	}
}
