package fault

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/api/rds"
	"howdah/internal/state"
	"howdah/internal/state/format"
	"howdah/internal/testkit/rig"
)

// releaseBefore is the commit of the release before this one. Who makes a release writes the
// commit of the one that it follows.
//
//go:embed release-before.txt
var releaseBefore string

// before is the program of the release before. It is made once.
var before struct {
	sync.Once
	program string
	err     error
}

// buildBefore makes the program of the release before from the history of this clone. The program
// is kept in bin, under its commit.
func buildBefore() (string, error) {
	commit := strings.TrimSpace(releaseBefore)
	root := filepath.Join("..", "..")
	if out, err := exec.Command("git", "-C", root, "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		return "", fmt.Errorf("the history of this clone has no commit %s, of the release before: git fetch --unshallow: %w: %s", commit, err, out)
	}
	kept := filepath.Join(root, "bin", "howdah-"+commit)
	if _, err := os.Stat(kept); err != nil {
		if err := buildCommit(root, commit, kept); err != nil {
			return "", err
		}
	}
	// Databases' users have to reach it.
	program := filepath.Join(filepath.Dir(binary), "howdah-before")
	return program, copyProgram(kept, program)
}

func buildCommit(root, commit, kept string) error {
	dir, err := os.MkdirTemp("", "howdah-before-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	archive := exec.Command("git", "-C", root, "archive", commit)
	unpack := exec.Command("tar", "-x", "-C", dir)
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := unpack.Start(); err != nil {
		return err
	}
	if err := errors.Join(archive.Run(), unpack.Wait()); err != nil {
		return fmt.Errorf("unpack %s: %w", commit, err)
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	made := filepath.Join(dir, "howdah.made")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", made, "./cmd/howdah")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", commit, err, out)
	}
	if err := copyProgram(made, kept+".new"); err != nil {
		return err
	}
	return os.Rename(kept+".new", kept)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// older begins a story in which some parts are of the release before.
func older(t *testing.T, parts ...string) *story {
	t.Helper()
	return begin(t, func(o *rig.Options) {
		// Other stories go on while it is made.
		before.Do(func() { before.program, before.err = buildBefore() })
		if before.err != nil {
			t.Fatal(before.err)
		}
		o.Programs = map[string]string{}
		for _, part := range parts {
			o.Programs[part] = before.program
		}
	})
}

var agents = []string{"agent-a", "agent-b", "agent-c"}

// lives makes a database, changes it so that it has a standby, and makes it fail over, under
// writers.
func (s *story) lives() (id string, w *writers) {
	s.Helper()
	id = s.given("orders", false)
	w = s.writing("orders")
	s.must(s.rig.Call(s.Context(), "ModifyDBInstance", &rds.ModifyDBInstanceMessage{
		DBInstanceIdentifier: new("orders"), MultiAZ: new(true), ApplyImmediately: new(true),
	}, &rds.ModifyDBInstanceResult{}), "have a standby made")
	s.failOver(id, w)
	return id, w
}

// startedAt returns when the primary's PostgreSQL was started.
func (s *story) startedAt() string {
	s.Helper()
	at, err := s.query("orders", "SELECT pg_postmaster_start_time()::text")
	s.must(err, "ask when the primary was started")
	return at
}

// upgrade starts parts again, with the program of this release.
func (s *story) upgrade(parts ...string) {
	s.Helper()
	for _, part := range parts {
		s.rig.Programs[part] = ""
		s.rig.KillPart(part)
		s.must(s.rig.StartPart(part), "start "+part+" of this release")
	}
}

// A home of the release before gets a control plane and an edge of this one, which work with its
// agents. The records stay as those agents know them, until the last agent is of this release, too.
// Then what hosts were told is sealed. No PostgreSQL is started anew for any of it.
func TestAgentsOfTheReleaseBefore(t *testing.T) {
	s := older(t, append([]string{"serve", "edge"}, agents...)...)
	s.upgrade("serve", "edge")
	s.eventually(60*time.Second, s.isWell)
	_, w := s.lives()
	if now, err := format.Read(s.Context(), s.rig.Store.Client); err != nil || now.Format != 0 {
		t.Errorf("the records have format %+v beside older agents, %v", now, err)
	}
	began := s.startedAt()
	s.upgrade(agents...)
	s.eventually(60*time.Second, func() error {
		now, err := format.Read(s.Context(), s.rig.Store.Client)
		if err == nil && now.Format != format.Newest {
			err = fmt.Errorf("the records have format %+v", now)
		}
		return errors.Join(err, s.sealed())
	})
	w.works(10 * time.Second)
	if now := s.startedAt(); now != began {
		t.Errorf("PostgreSQL was started at %s, and then at %s", began, now)
	}
	w.nothingLost()
	s.eventually(60*time.Second, s.isWell)
}

// sealed returns nil once everything that hosts were told is sealed, and once their agents keep it
// so.
func (s *story) sealed() error {
	told, err := s.rig.Store.Client.Get(s.Context(), state.AssignRoot, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	if len(told.Kvs) < 2 {
		return fmt.Errorf("%d assignments", len(told.Kvs))
	}
	for _, kv := range told.Kvs {
		host, id, _ := strings.Cut(state.Tail(string(kv.Key), state.AssignRoot), "/")
		kept, err := os.ReadFile(filepath.Join(s.rig.HostDir(strings.TrimPrefix(host, "zone-")), "assigned", id+".json"))
		if err != nil {
			return err
		}
		for _, text := range [][]byte{kv.Value, kept} {
			var a struct{ Seal string }
			if err := json.Unmarshal(text, &a); err != nil || a.Seal == "" {
				return fmt.Errorf("%s has no seal: %w", kv.Key, err)
			}
		}
	}
	return nil
}

// Agents of this release work with a control plane and an edge of the one before.
func TestAControlPlaneOfTheReleaseBefore(t *testing.T) {
	s := older(t, "serve", "edge")
	_, w := s.lives()
	began := s.startedAt()
	s.upgrade("serve")
	s.eventually(60*time.Second, s.sealed)
	w.works(10 * time.Second)
	if now := s.startedAt(); now != began {
		t.Errorf("PostgreSQL was started at %s, and then at %s", began, now)
	}
	w.nothingLost()
}

// A newer release wrote a home's records. An older control plane does not serve it, and says in one
// line what to start. The database goes on.
func TestRecordsOfANewerRelease(t *testing.T) {
	s := begin(t, nil)
	s.given("orders", false)
	w := s.writing("orders")
	_, err := s.rig.Store.Commit(s.Context(), state.Put(state.HomeFormat, format.Record{Format: format.Newest + 1, Release: "99.1", At: time.Now()}))
	s.must(err, "write the format of a newer release")
	says := func(part string) {
		t.Helper()
		s.eventually(20*time.Second, func() error {
			text, err := os.ReadFile(filepath.Join(s.rig.Dir, part+".log"))
			if err == nil && !strings.Contains(string(text), "start howdah 99.1 or newer") {
				err = fmt.Errorf("%s does not say it", part)
			}
			return err
		})
	}
	says("serve")
	s.must(os.Truncate(filepath.Join(s.rig.Dir, "serve.log"), 0), "empty the log")
	s.must(s.rig.StartPart("serve"), "start it again")
	says("serve")
	w.works(10 * time.Second)
	w.nothingLost()
}
