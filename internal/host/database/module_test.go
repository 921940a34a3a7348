package database

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
)

// Two servers were started without the module that their configuration names by now: both
// say so, though the settings are there, and serve on. One that is started again has it.
func TestAServerWithoutTheModule(t *testing.T) {
	p := newPair(t)
	reports := func(of member.Assignment, problem member.Problem) {
		t.Helper()
		p.Awaits(of.ID, time.Minute, func(r member.Report) error {
			if !r.Ready || r.Problem != problem {
				return fmt.Errorf("report %+v", r)
			}
			return nil
		})
	}
	const startedSQL = "SELECT pg_postmaster_start_time()::text"
	before, err := p.ask(p.primary, startedSQL)
	p.Must(err)
	reports(p.primary, member.None) // it is not wanted
	p.primary.Cluster.Parameters = map[string]string{"shared_preload_libraries": "pg_stat_statements,howdah"}
	p.standby.Cluster = p.primary.Cluster
	document, err := p.primary.Cluster.Document()
	p.Must(err)
	_, err = p.Store.Client.Put(t.Context(), patroni.ConfigKey("db-1"), string(document))
	p.Must(err)
	p.primary.Generation, p.standby.Generation = 2, 2
	p.Assign(p.primary)
	p.Assign(p.standby)
	reports(p.primary, member.NoModule)
	reports(p.standby, member.NoModule)
	testkit.Eventually(t, time.Minute, func() error {
		waits, err := p.ask(p.standby, "SELECT pending_restart::text FROM pg_settings WHERE name = 'shared_preload_libraries'")
		if err == nil && waits != "true" {
			err = errors.New("Patroni has not written the setting yet")
		}
		return err
	})
	pid, err := strconv.Atoi(p.Lines(p.standby.ID, "data/postmaster.pid")[0])
	p.Must(err)
	p.Must(syscall.Kill(pid, syscall.SIGINT)) // Patroni starts it again
	reports(p.standby, member.None)
	p.inSync("m1", "m2")
	reports(p.primary, member.NoModule)
	if now, err := p.ask(p.primary, startedSQL); err != nil || now != before {
		t.Errorf("the primary was started again: %s, %s, %v", before, now, err)
	}
}

// A process has a file in its memory, another one is put in its place as an installation does, and
// the process goes on with the old one.
func TestAModuleThatWasReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), postgres.ModuleFile)
	install := func() {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte("module"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	install()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	loaded, err := syscall.Mmap(int(file.Fd()), 0, 6, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(loaded) }()
	var look moduleLook
	own, began := proc.Process{PID: os.Getpid()}, time.Now()
	if look.old(own, began) {
		t.Error("the installed module counts as replaced")
	}
	install()
	if look.old(own, began.Add(moduleEvery/2)) {
		t.Error("it looks more often than it says")
	}
	if !look.old(own, began.Add(moduleEvery)) {
		t.Error("a module that was replaced is not found")
	}
	if !look.old(proc.Process{PID: os.Getpid(), Start: 1}, began) {
		t.Error("another server is not looked at anew")
	}
	if look.old(proc.Process{}, began) {
		t.Error("no server has a module that was replaced")
	}
}
