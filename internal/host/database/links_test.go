package database

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/cut"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// touched are the paths below a member's directory that the agent reads, writes or hands on.
var touched = []string{
	patroni.ConfigFile, ldapFile, "initdb", "pg_rewind", "pg_basebackup", "postgres", "data.kept.size", "data.kept",
	patroni.CertDir, "tls/tls.key", "tls/tls.crt", "tls/ca.crt", patroni.OwnDir, "tls/own/tls.key", "tls/own/tls.crt", "tls/own/ca.crt", patroni.PythonDir, "python/" + patroni.WholeFile,
	patroni.LogDir, "log/" + patroniOutput, "log/postgresql.log.2026-11-23-07",
	patroni.DataDir, "data/" + cut.AutoConfFile, "data/postgresql.conf", "data/pg_hba.conf", "data/postmaster.pid",
	"data/" + standbyFile, "data/global", "data/global/pg_control", "data/pg_wal",
}

// Whoever runs as the database's user has its member's directory: what it puts there in the
// place of anything leads the agent, which is root, nowhere else, and does not stop it.
func TestTheAgentFollowsNobodysLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	a := w.open()
	if os.Geteuid() != 0 {
		testkit.Missing(t, "a user for databases: run it as root")
	}
	a.Store = w.Store
	told := w.Assignment("db-links", 1)
	told.IAMAuth = true
	told.Keys = &member.Keys{Authority: certs.Fingerprint(w.Members.Cert), Admits: []string{told.Scope}}
	r := unstarted(a, told.ID)
	r.Want = told
	group, err := a.Procs.Group(told.ID)
	w.Must(err)
	r.Group = group
	w.Assign(told)
	v := hosttest.NewVictim(t, a.Agent)
	v.Plant(r.ID, filepath.Join(r.Dir(), "other"), "nothing")
	w.Must(touchAll(t, a, r, true)) // it does all of it, where there is nothing in its way
	for _, path := range touched {
		for _, kind := range []string{"link", "hard link", "pipe"} {
			t.Run(kind+" "+path, func(t *testing.T) {
				v := hosttest.NewVictim(t, a.Agent)
				v.Plant(r.ID, filepath.Join(r.Dir(), path), kind)
				_ = touchAll(t, a, r, strings.HasPrefix(path, patroni.LogDir))
				v.Unchanged()
			})
		}
	}
}

// touchAll does everything that an agent does with the files of a member, and answers, if it is
// to start Patroni, whether it could. Much of it fails, and none of it waits.
func touchAll(t *testing.T, a *Host, r *runner, launch bool) (launched error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if m, err := r.settings.render(ctx); err == nil {
			_ = r.settings.admit(m)
			_ = r.settings.differs(m.HBAPath(), m.HBA())
		}
		_ = r.aside.Scripts(postgres.Install{}, nil, "")
		_ = r.settings.writeLDAP()
		_, _ = a.Remembered(r.ID)
		_, _ = r.standby.IsCut(), r.standby.IsSealed()
		_ = r.keys.Last()
		r.aside.Drop(ctx)
		_ = lastLine(r.User(), filepath.Join(r.Dir(), patroni.LogDir, patroniOutput))
		_, _ = postgres.Postmaster(r.dataDir)
		_, _ = postgres.ReadControl(r.dataDir)
		_ = postgres.RemoveShared(r.dataDir)
		logs := a.logDir(r.ID)
		_, _ = logs.List()
		_ = logs.Trim(time.Now(), 0)
		_, _ = a.Inspector().Inspect(ctx, regain.Copy{Assignment: member.Assignment{ID: r.ID}})
		if launch { // which takes most of the time
			_, launched = r.launch(ctx)
			_, _ = r.Group.Kill(ctx)
		}
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("the agent waits for it")
	}
	return launched
}
