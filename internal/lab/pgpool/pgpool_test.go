package pgpool

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

	"howdah/internal/identity/certs"
	"howdah/internal/lab/address"
	"howdah/internal/lab/own"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// program is pgpool, which a test needs.
func program(t *testing.T) string {
	t.Helper()
	path, err := Find()
	if err != nil {
		testkit.Missing(t, "pgpool")
	}
	return path
}

// at is how one reaches a server of a test.
func at(t *testing.T, s *pgtest.Server, password, query string) address.Server {
	t.Helper()
	server, err := address.Parse("postgresql://"+s.User+password+"@"+s.Addr+"/"+s.Database+"?"+query, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func ask1(t *testing.T, server address.Server, sql string) (text string, err error) {
	t.Helper()
	config := server.Config()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	return text, conn.QueryRow(t.Context(), sql).Scan(&text)
}

// gone says what is left of a pgpool.
func gone(r record, dir string) error {
	all, err := r.processes()
	if err != nil || len(all) > 0 {
		return fmt.Errorf("%d processes: %w", len(all), errors.Join(err, errStays)) //nolint:err113 // of a test
	}
	for _, path := range []string{r.Directory, filepath.Join(dir, folder)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is there: %w", path, errors.Join(err, errStays))
		}
	}
	return nil
}

func TestReadsGoToAllAndWritesToOne(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Follow("reader", pgtest.Options{})
	dir := t.TempDir()
	p, err := Start(t.Context(), Options{
		Program: program(t), Dir: dir, Writer: at(t, primary, "", "sslmode=disable"), Readers: []address.Server{at(t, standby, "", "sslmode=disable")}, Clients: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Stop(context.Background()), gone(p.record, dir)); err != nil { //nolint:usetesting // the test's own has ended
			t.Error(err)
		}
	})
	// Its files are its user's alone.
	err = filepath.WalkDir(p.record.Directory, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSocket != 0 || d.Name() == "pgpool.pid" || d.Name() == "pgpool_status" {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := ask1(t, p.Server(), "CREATE TABLE read_from (n int) "); err != nil && !strings.Contains(err.Error(), "no rows") {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		_, err := ask1(t, at(t, standby, "", "sslmode=disable"), "SELECT count(*)::text FROM read_from")
		return err
	})
	seen := map[string]bool{}
	testkit.Eventually(t, 30*time.Second, func() error {
		text, err := ask1(t, p.Server(), "SELECT current_setting('port')")
		if err != nil {
			return err
		}
		if seen[text] = true; len(seen) < 2 {
			return fmt.Errorf("only %v were read: %w", seen, errStays)
		}
		return nil
	})
	if pids := p.Processes(); len(pids) < 4 || p.CPU() < 0 {
		t.Errorf("it has %v", pids)
	}
	// Nobody comes in without the password, though the servers trust everybody.
	stranger, err := address.Parse(strings.Replace(p.Server().Address(), primary.User+"@", primary.User+":wrong@", 1), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := ask1(t, stranger, "SELECT 'in'"); err == nil {
		t.Errorf("a stranger is %s", text)
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Processes()[0])); err != nil || strings.Contains(string(text), p.Server().Config().Password) {
		t.Errorf("%q, %v", text, err)
	}
}

// protect has a server ask for a password, over TLS alone.
func protect(t *testing.T, s *pgtest.Server) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	hba := filepath.Join(s.DataDir(), "pg_hba.conf")
	if _, err := conn.Exec(t.Context(), "ALTER ROLE "+s.User+" PASSWORD 'se cr%''et'"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hba, []byte("hostssl all all 127.0.0.0/8 scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		_, err := ask1(t, at(t, s, ":se%20cr%25%27et", "sslmode=disable"), "SELECT 'in'")
		if err == nil {
			return errStays
		}
		return nil
	})
}

func TestTLSAndPasswords(t *testing.T) {
	t.Parallel()
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: "server", DNSNames: []string{"localhost"}, For: certs.ServerOnly})
	if err != nil {
		t.Fatal(err)
	}
	s := pgtest.Start(t, pgtest.Options{Pair: &pair})
	protect(t, s)
	other, err := certs.New("other")
	if err != nil {
		t.Fatal(err)
	}
	strange, err := other.Issue(certs.Subject{CommonName: "server", For: certs.ServerOnly})
	if err != nil {
		t.Fatal(err)
	}
	for name, authority := range map[string][]byte{"its own": pair.CAPEM, "another": strange.CAPEM} {
		root, dir := filepath.Join(t.TempDir(), "root.crt"), t.TempDir()
		if err := os.WriteFile(root, authority, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		p, err := Start(ctx, Options{Program: program(t), Dir: dir, Writer: at(t, s, ":se%20cr%25%27et", "sslmode=verify-ca&sslrootcert="+root), Clients: 2})
		cancel()
		if name == "another" {
			if err == nil {
				t.Error("a server of another authority is taken")
				_ = p.Stop(t.Context()) // it failed already
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := ask1(t, p.Server(), "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
		if err != nil || text != "true" {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		// Clients by libpq check its certificate in their own way, and they speak TLS, too.
		psql := exec.CommandContext(t.Context(), testkit.NeedProgram(t, "psql"), "-XAt", "-c", `\conninfo`, p.Server().Address())
		if psql.Env, err = p.Server().Environment(); err != nil {
			t.Fatal(err)
		}
		if said, err := psql.CombinedOutput(); err != nil || !strings.Contains(string(said), "SSL connection") {
			t.Errorf("%s, %v", said, err)
		}
		plain := p.Server().Config()
		plain.TLSConfig, plain.Fallbacks = nil, nil
		if conn, err := pgx.ConnectConfig(t.Context(), plain); err == nil {
			t.Error("it takes a client in clear")
			conn.Close(t.Context())
		}
		if err := errors.Join(p.Stop(t.Context()), gone(p.record, dir)); err != nil {
			t.Error(err)
		}
	}
}

// asLab has this test's program be a lab that is killed.
const asLab = "HOWDAH_TEST_PGPOOL_LAB"

func TestMain(m *testing.M) {
	if text := os.Getenv(asLab); text != "" {
		beLab(strings.Split(text, " "))
	}
	os.Exit(m.Run())
}

func beLab(args []string) {
	server, err := address.Parse(args[1], args[0])
	if err == nil {
		_, err = Start(context.Background(), Options{Program: args[2], Dir: args[0], Writer: server, Clients: 3})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := os.WriteFile(filepath.Join(args[0], "started"), nil, 0o600); err != nil {
		os.Exit(1)
	}
	time.Sleep(time.Hour)
}

func TestAKilledLabLeavesNothing(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	pgpool := program(t)
	for _, headless := range []bool{false, true} {
		dir := t.TempDir()
		lab := exec.CommandContext(t.Context(), os.Args[0])
		lab.Env = append(os.Environ(), asLab+"="+dir+" "+at(t, s, "", "sslmode=disable").Address()+" "+pgpool)
		testkit.Start(t, lab)
		testkit.Eventually(t, 60*time.Second, func() error { _, err := os.Stat(filepath.Join(dir, "started")); return err })
		text, err := own.ReadFile(filepath.Join(dir, folder, recordName))
		if err != nil {
			t.Fatal(err)
		}
		r := record{Directory: strings.Split(string(text), "\"")[3]}
		all, err := r.processes()
		if err != nil || len(all) < 4 {
			t.Fatalf("%d processes, %v", len(all), err)
		}
		if headless { // nobody tells the others to end
			if err := signal(head(all).ID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if err := lab.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if !headless { // already before the next run
			testkit.Eventually(t, 30*time.Second, func() error {
				if all, err := r.processes(); err != nil || len(all) > 0 {
					return fmt.Errorf("%d processes: %w", len(all), errors.Join(err, errStays))
				}
				return nil
			})
		}
		for range 2 {
			if err := errors.Join(Clear(t.Context(), dir), gone(r, dir)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestARecordOfSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	for _, directory := range []string{"/etc", "howdah-pgpool-x", "/tmp/other"} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := own.WriteFile(filepath.Join(dir, folder, recordName), []byte(`{"directory":"`+directory+`"}`)); err != nil {
			t.Fatal(err)
		}
		if err := Clear(t.Context(), dir); !errors.Is(err, own.ErrForeign) {
			t.Errorf("%s: %v", directory, err)
		}
	}
}
