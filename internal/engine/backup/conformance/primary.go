package conformance

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/identity/certs"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// A backup of a standby holds what was committed before it began, can be built upon by one of the
// primary, and the other way round. Nobody but the standby uses the primary's server.
func testOfStandby(t *testing.T, c Config) {
	w := prepared(t, c)
	w.archived(w.server)
	standby := w.server.Follow("standby", pgtest.Options{Settings: "archive_mode = always\narchive_timeout = 0\n"})
	p := w.placeOf(standby)
	p.Repositories = w.place.Repositories
	w.write(standby, p)
	archiveBy(standby, w.engine.ArchiveCommand(p))

	peers := w.authority("clients")
	from := w.serve(w.engine, peers)
	from.Dir = w.dir(standby, "job")
	from.CertFile, from.KeyFile, _ = w.pair(standby, peers.issue(t, "standby"), "own")
	take := func(kind backupmodel.Kind, operation string) backup.Info {
		t.Helper()
		w.must(w.prepare(standby, w.engine.BackupStandby(p, from, backup.Take{Repository: main, Kind: kind, Operation: operation})))
		return w.listed(operation)
	}
	full := take(backupmodel.Full, "op-1")
	w.exec("INSERT INTO kept VALUES (2)")
	second := w.backup(backupmodel.Incremental, "op-2")
	w.exec("INSERT INTO kept VALUES (4)")
	w.exec("UPDATE far SET n = 8")
	third := take(backupmodel.Incremental, "op-3")
	if len(full.Needs) != 0 || len(second.Needs) != 1 || len(third.Needs) != 2 || third.Damaged {
		t.Errorf("%+v, %+v, %+v", full, second, third)
	}
	r := w.restore("built-upon", backup.Restore{Label: third.Label})
	r.has(count, "7")
	r.has("SELECT n::text FROM far", "8")

	fails := func(what string, engine backup.Engine, from backup.Primary) {
		t.Helper()
		prepared := engine.BackupStandby(p, from, backup.Take{Repository: main, Kind: backupmodel.Incremental, Operation: "none"})
		if out, exit := w.run(w.prepare(standby, prepared)); exit == 0 {
			t.Errorf("%s: a backup was made:\n%s", what, out)
		}
	}
	other := from
	other.CertFile, other.KeyFile, _ = w.pair(standby, peers.issue(t, "another"), "another")
	fails("another name", w.engine, other)
	other.CertFile, other.KeyFile, _ = w.pair(standby, w.authority("others").issue(t, "standby"), "others")
	fails("another authority", w.engine, other)
	other = from
	_, _, other.CAFile = w.pair(standby, w.authority("others").issue(t, "standby"), "other-server")
	fails("another server", w.engine, other)
	if c.Other != nil {
		fails("another release", c.Other, from)
	}
	standby.Exec("SELECT pg_promote()")
	fails("no standby", w.engine, from)
	if got := len(w.list().Backups); got != 3 {
		t.Errorf("%d backups are there", got)
	}
}

type authority struct{ *certs.CA }

func (w *world) authority(name string) authority {
	w.Helper()
	ca, err := certs.New(name)
	if err != nil {
		w.Fatal(err)
	}
	return authority{ca}
}

func (a authority) issue(t testing.TB, name string) certs.Pair {
	t.Helper()
	pair, err := a.Issue(certs.Subject{CommonName: name, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// pair writes a pair for a server's user.
func (w *world) pair(s *pgtest.Server, pair certs.Pair, name string) (cert, key, ca string) {
	w.Helper()
	dir := w.dir(s, name)
	if err := pair.Write(dir); err != nil {
		w.Fatal(err)
	}
	cert, key, ca = filepath.Join(dir, certs.CertFile), filepath.Join(dir, certs.KeyFile), filepath.Join(dir, certs.CAFile)
	for _, path := range []string{cert, key, ca} {
		s.Give(path)
	}
	return cert, key, ca
}

// prepare writes what a command needs, and returns it.
func (w *world) prepare(s *pgtest.Server, p backup.Prepared) backup.Command {
	w.Helper()
	for _, file := range p.Files {
		if file.Mode&0o077 != 0 {
			w.Errorf("others may read %s", file.Path)
		}
		if err := os.WriteFile(file.Path, file.Data, file.Mode); err != nil {
			w.Fatal(err)
		}
		s.Give(file.Path)
	}
	return p.Command
}

// serve lets the standby with a certificate of these authorities use the primary.
func (w *world) serve(engine backup.Engine, peers authority) backup.Primary {
	w.Helper()
	host, text, err := net.SplitHostPort(testkit.FreeAddr(w))
	if err != nil {
		w.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		w.Fatal(err)
	}
	own := w.authority("servers").issue(w, "server")
	trusted := own
	trusted.CAPEM = peers.issue(w, "none").CAPEM
	cert, key, ca := w.pair(w.server, trusted, "serving-pair")
	prepared := engine.Serve(w.place, backup.Server{Dir: w.dir(w.server, "serving"), Address: host, Port: port, CertFile: cert, KeyFile: key, CAFile: ca, Client: "standby"})
	command := w.prepare(w.server, prepared)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, command.Path, command.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", append([]string{"PATH=/usr/bin:/bin"}, command.Env...), os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: w.server.Credential(), Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		for _, link := range prepared.Leaves {
			if _, err := os.Lstat(link.Path); err == nil {
				w.Errorf("%s is left", link.Path)
			}
		}
	})
	testkit.Eventually(w, within, func() error {
		conn, err := new(net.Dialer).DialContext(w.Context(), "tcp", net.JoinHostPort(host, text))
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	_, _, serverCA := w.pair(w.server, own, "server-ca")
	return backup.Primary{
		Address: host, Port: port, CAFile: serverCA, ServerDir: filepath.Join(filepath.Dir(w.place.Dir), "serving"), DataDir: w.place.DataDir, SocketDir: w.place.SocketDir, PostgresPort: w.place.Port,
	}
}
