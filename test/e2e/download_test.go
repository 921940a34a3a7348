package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgversion"
)

// outsider is an ordinary user of another machine: one without a home of Howdah, who has an access key,
// the program, and a PostgreSQL.
type outsider struct {
	*cli
	dir     string
	id      *syscall.Credential
	env     []string
	install postgres.Install
}

func (c *cli) outsider() *outsider {
	c.Helper()
	known, err := user.Lookup("postgres")
	if err != nil {
		testkit.Missing(c, "the user postgres: run scripts/install")
	}
	uid, errUID := strconv.Atoi(known.Uid)
	gid, errGID := strconv.Atoi(known.Gid)
	install, err := postgres.Find(pgversion.Major())
	if err := errors.Join(errUID, errGID, err); err != nil {
		c.Fatal(err)
	}
	o := &outsider{
		cli: c, dir: filepath.Join(filepath.Dir(c.home), "user"), id: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}, install: install,
	}
	if err := errors.Join(os.Mkdir(o.dir, 0o700), os.Chown(o.dir, uid, gid)); err != nil {
		c.Fatal(err)
	}
	o.env = append(o.env, "HOME="+o.dir)
	o.give(binary, "howdah", 0o700)
	for line := range strings.Lines(c.does(10*time.Second, "env")) {
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		value = strings.Trim(value, "'")
		switch {
		case !ok || !strings.HasPrefix(name, "AWS_"):
			continue
		case name == "AWS_CA_BUNDLE":
			value = o.give(value, "ca.pem", 0o600)
		}
		o.env = append(o.env, name+"="+value)
	}
	return o
}

// give copies a file to the user.
func (o *outsider) give(from, name string, mode os.FileMode) string {
	o.Helper()
	to := filepath.Join(o.dir, name)
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, mode)
	}
	if err := errors.Join(err, os.Chown(to, int(o.id.Uid), int(o.id.Gid))); err != nil {
		o.Fatal(err)
	}
	return to
}

func (o *outsider) command(program string, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(o.Context(), program, words...)
	cmd.Dir, cmd.Env = o.dir, o.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.id}
	cmd.WaitDelay = patience.For(5 * time.Second)
	return cmd
}

func (o *outsider) runs(program string, words ...string) string {
	o.Helper()
	out, err := o.command(program, words...).CombinedOutput()
	if err != nil {
		o.Fatalf("%s %v: %v\n%s", filepath.Base(program), words, err, out)
	}
	return strings.TrimSpace(string(out))
}

// downloadJourney takes the data of a snapshot out, from a machine without a home: as a data directory,
// which a plain PostgreSQL is started on, and as a dump, which is restored into another database.
func (c *cli) downloadJourney(database, sum, rows string) {
	c.Log("a snapshot is downloaded by an ordinary user, and a plain PostgreSQL has the rows")
	o := c.outsider()
	howdah := filepath.Join(o.dir, "howdah")
	if out := o.runs(howdah, "snapshot", "download", "before-sale-far", "taken", "--dry-run"); !strings.Contains(out, "would download before-sale-far to "+o.dir+"/taken") {
		c.Errorf("a dry run says\n%s", out)
	}
	o.killed(howdah)
	if out := o.runs(howdah, "snapshot", "download", "before-sale-far", "taken"); !strings.Contains(out, "before-sale-far is in "+o.dir+"/taken") {
		c.Errorf("it says\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(o.dir, "taken.part")); !errors.Is(err, os.ErrNotExist) {
		c.Errorf("what is not whole is left: %v", err)
	}
	info, err := os.Stat(filepath.Join(o.dir, "taken"))
	if err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != o.id.Uid {
		c.Errorf("the directory is %v, %v", info, err)
	}
	taken := filepath.Join(o.dir, "taken")
	o.runs(o.install.Program("pg_ctl"), "-D", taken, "-l", filepath.Join(o.dir, "log"), "-w", "-t", "120", "start")
	defer func() {
		if out, err := o.command(o.install.Program("pg_ctl"), "-D", taken, "-m", "fast", "-w", "stop").CombinedOutput(); err != nil {
			c.Errorf("stop the plain server: %v\n%s", err, out)
		}
	}()
	psql := func(role, name, statement string) string {
		return o.runs("psql", "-h", taken, "-U", role, "-d", name, "-XqAtc", statement)
	}
	if got := psql("postgres", database, sum); got != rows {
		c.Errorf("the data directory has %s, and the database had %s", got, rows)
	}
	if got := psql("rdsadmin", "postgres", "SELECT count(*) FROM pg_authid WHERE rolpassword IS NOT NULL"); got != "0" {
		c.Errorf("%s roles have passwords", got)
	}
	psql("postgres", database, "CREATE TABLE more AS SELECT 1 AS n; DROP TABLE more")

	c.Log("a dump of it restores into another database")
	o.runs(howdah, "snapshot", "download", "before-sale-far", "dump", "--format", "dump", "--database", database)
	psql("rdsadmin", "postgres", "CREATE DATABASE copied")
	o.runs(o.install.Program("pg_restore"), "-h", taken, "-U", "rdsadmin", "-d", "copied", filepath.Join(o.dir, "dump", "databases", database))
	if got := psql("postgres", "copied", sum); got != rows {
		c.Errorf("the dump has %s, and the database had %s", got, rows)
	}
	globals, err := os.ReadFile(filepath.Join(o.dir, "dump", "globals.sql"))
	if err != nil || !strings.Contains(string(globals), "CREATE ROLE") || strings.Contains(string(globals), "SCRAM-SHA-256") {
		c.Errorf("the roles are\n%s\n%v", globals, err)
	}
	// The roles are read by a superuser of another name, as initdb -U rdsadmin makes it.
	for role, want := range map[string]string{"postgres": "log in as another superuser", "rdsadmin": "already exists"} {
		out, err := o.command("psql", "-h", taken, "-U", role, "-d", "postgres", "-X", "-f", filepath.Join(o.dir, "dump", "globals.sql")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			c.Errorf("as %s the roles say\n%s%v", role, out, err)
		}
	}
	testkit.Eventually(c, 30*time.Second, func() error {
		for _, p := range reads[[]struct{ Kind, State string }](c, "operations") {
			if p.Kind == "download-snapshot" && p.State != "done" {
				return fmt.Errorf("a download is %s", p.State)
			}
		}
		return nil
	})
}

// killed begins a download, and kills the command before all is there.
func (o *outsider) killed(howdah string) {
	o.Helper()
	cmd := o.command(howdah, "snapshot", "download", "before-sale-far", "taken")
	if err := cmd.Start(); err != nil {
		o.Fatal(err)
	}
	testkit.Eventually(o, 120*time.Second, func() error {
		_, err := os.Stat(filepath.Join(o.dir, "taken.part", ".howdah-download"))
		return err
	})
	if err := cmd.Process.Kill(); err != nil {
		o.Error(err)
	}
	_ = cmd.Wait()
	if _, err := os.Stat(filepath.Join(o.dir, "taken")); !errors.Is(err, os.ErrNotExist) {
		o.Errorf("something that is not whole is there: %v", err)
	}
}
