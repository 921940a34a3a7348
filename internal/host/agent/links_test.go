package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/postgres"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
)

// touched are the paths below a member's directory that the agent reads, writes or hands on.
var touched = []string{
	formerFile, patroni.ConfigFile, ldapFile, initdbScript, rewindScript, baseBackupScript, postgresScript, keptSize, keptDir,
	patroni.CertDir, "tls/tls.key", "tls/tls.crt", "tls/ca.crt", patroni.OwnDir, "tls/own/tls.key", "tls/own/tls.crt", "tls/own/ca.crt", patroni.PythonDir, "python/" + patroni.WholeFile,
	patroni.LogDir, "log/" + patroniOutput, "log/postgresql.log.2026-11-23-07",
	patroni.DataDir, "data/" + autoConfFile, "data/postgresql.conf", "data/pg_hba.conf", "data/postmaster.pid",
	"data/" + standbySignal, "data/global", "data/global/pg_control", "data/pg_wal",
}

// Whoever runs as the database's user has its member's directory: what it puts there in the
// place of anything leads the agent, which is root, nowhere else, and does not stop it.
func TestTheAgentFollowsNobodysLinks(t *testing.T) {
	w := newWorld(t, waits)
	a, _, err := w.open(t.Context())
	w.must(err)
	if a.users == nil {
		testkit.Missing(t, "a user for databases: run it as root")
	}
	a.Store = w.store
	told := w.assignment("db-links", 1)
	told.IAMAuth = true
	told.Keys = &member.Keys{Authority: certs.Fingerprint(w.members.Cert), Admits: []string{told.Scope}}
	r := unstarted(a, told.ID)
	r.Want = told
	r.Group, err = a.Procs.Group(told.ID)
	w.must(err)
	w.assign(told)
	v := newVictim(t, a)
	v.plant(filepath.Join(r.Dir(), "other"), "nothing")
	w.must(v.touchAll(r, true)) // it does all of it, where there is nothing in its way
	for _, path := range touched {
		for _, kind := range []string{"link", "hard link", "pipe"} {
			t.Run(kind+" "+path, func(t *testing.T) {
				v := newVictim(t, a)
				v.plant(filepath.Join(r.Dir(), path), kind)
				_ = v.touchAll(r, strings.HasPrefix(path, patroni.LogDir))
				v.unchanged()
			})
		}
	}
}

// victim is a file and a directory of root's, with what a thief would look for.
type victim struct {
	*testing.T
	agent     *Host
	root      string
	before    string
	dir, file string
}

func newVictim(t *testing.T, a *Host) *victim {
	t.Helper()
	root, err := os.MkdirTemp(filepath.Dir(a.Dir), "victim-") // on the same disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	v := &victim{T: t, agent: a, root: root, dir: filepath.Join(root, "dir"), file: filepath.Join(root, "file")}
	v.must(os.Chmod(root, 0o755)) // the user can get there
	v.must(os.MkdirAll(filepath.Join(v.dir, "global"), 0o755))
	v.must(os.WriteFile(v.file, []byte("primary_conninfo\nsecret\n"), 0o640))
	for _, name := range []string{"tls.key", "howdah", "pg_hba.conf", autoConfFile} {
		v.must(os.WriteFile(filepath.Join(v.dir, name), []byte("root's"), 0o600))
	}
	v.before = v.state()
	return v
}

func (v *victim) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// state is everything that can be changed of it.
func (v *victim) state() string {
	v.Helper()
	var all strings.Builder
	v.must(filepath.WalkDir(v.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		own, _ := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&all, strings.TrimPrefix(path, v.root), info.Mode(), own.Uid, own.Gid)
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%q\n", text)
			return err
		}
		return nil
	}))
	return all.String()
}

func (v *victim) unchanged() {
	v.Helper()
	if now := v.state(); now != v.before {
		v.Errorf("it was\n%s\nand is\n%s", v.before, now)
	}
}

// plant makes a member whose user has put something else in the place of a path.
func (v *victim) plant(path, kind string) {
	v.Helper()
	member := filepath.Join(v.agent.Dir, "members", "db-links.m1")
	v.must(os.RemoveAll(member))
	v.must(v.agent.Give(member))
	user := v.agent.OwnerOf(member)
	for _, dir := range []string{"tls", "tls/own", "python", "log", "data/global"} {
		v.must(user.MakeDir(filepath.Join(member, dir)))
	}
	target := v.file
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		target = v.dir
	}
	v.must(os.RemoveAll(path))
	switch kind {
	case "link":
		v.must(user.Do(func() error { return os.Symlink(target, path) }))
	case "hard link":
		// The kernel may let the user do it: fs.protected_hardlinks.
		v.must(os.Link(v.file, path))
	case "pipe":
		v.must(user.Do(func() error { return unix.Mkfifo(path, 0o666) }))
	}
}

// touchAll does everything that an agent does with the files of a member, and answers, if it is
// to start Patroni, whether it could. Much of it fails, and none of it waits.
func (v *victim) touchAll(r *runner, launch bool) (launched error) {
	v.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(v.Context(), 10*time.Second)
		defer cancel()
		if m, err := r.render(ctx); err == nil {
			_ = r.admit(m)
			_ = r.differs(m.HBAPath(), m.HBA())
		}
		_ = r.scripts(postgres.Install{})
		_ = r.writeLDAP()
		_ = r.remember()
		_, _ = v.agent.Remembered(r.ID)
		_, _, _ = r.isCut(), r.isSealed(), r.mayReceiveFrom("127.0.0.1:1")
		_ = r.cutReceiver(ctx, false)
		_, _, _ = r.onDisk(), r.kept(), r.lacksRoom()
		_ = r.lastLine(filepath.Join(r.Dir(), patroni.LogDir, patroniOutput))
		_, _ = postgres.Postmaster(r.dataDir())
		_, _ = postgres.ReadControl(r.dataDir())
		_ = postgres.RemoveShared(r.dataDir())
		logs := v.agent.logDir(r.ID)
		_, _ = logs.List()
		_ = logs.Trim(time.Now(), 0)
		h := &holdings{agent: v.agent.Agent, inspector: v.agent.Inspector()}
		_, _ = h.copyOf(ctx, r.ID)
		if launch { // which takes most of the time
			_, launched = r.launch(ctx)
			_, _ = r.Group.Kill(ctx)
		}
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		v.Fatal("the agent waits for it")
	}
	return launched
}

// What a member was told last is the agent's: another file in the member's directory does
// not take its place, nor does one that somebody else wrote where a release before kept it.
func TestWhatAMemberWasToldIsTheAgents(t *testing.T) {
	w := newWorld(t, waits)
	a, _, err := w.open(t.Context())
	w.must(err)
	told := w.assignment("db-told", 1)
	dir := a.MemberDir(told.ID)
	w.must(a.Give(dir))
	text, err := json.Marshal(told)
	w.must(err)
	former := filepath.Join(dir, formerFile)
	w.must(a.UserOf(told.ID).ReplaceFile(former, text, 0o600))
	if _, err := a.Remembered(told.ID); a.users != nil && err == nil {
		t.Error("the user's own file counts")
	}
	w.must(os.Remove(former))
	w.must(os.WriteFile(former, text, 0o600))
	if got, err := a.Remembered(told.ID); err != nil || got.Generation != 1 {
		t.Errorf("of a release before: %+v, %v", got, err)
	}
	r := unstarted(a, told.ID)
	r.Want = told
	r.Want.Generation = 2
	w.must(r.remember())
	w.must(os.WriteFile(former, text, 0o600))
	if got, err := a.Remembered(told.ID); err != nil || got.Generation != 2 {
		t.Errorf("the agent's own: %+v, %v", got, err)
	}
	w.must(r.forget())
	w.must(r.forget())
	w.must(os.Remove(former))
	if _, err := a.Remembered(told.ID); !os.IsNotExist(err) {
		t.Errorf("forgotten: %v", err)
	}
}
