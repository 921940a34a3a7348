package restore

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/host/proc"
	"howdah/internal/model/lsn"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/sourcetest"
)

// source is a database that is backed up.
type source struct{ *sourcetest.Source }

func newSource(t testing.TB) source { return source{sourcetest.New(t)} }

// request asks for a restore of the source into a new directory.
func (s source) request(t testing.TB, from backup.Restore) Request {
	t.Helper()
	dir := filepath.Join(hometest.Dir(t), "m")
	s.Must(os.Mkdir(dir, 0o700))
	if s.User != nil {
		s.Must(os.Chown(dir, s.User.UID, s.User.GID))
	}
	parent := filepath.Base(filepath.Dir(dir))
	procs, err := proc.Open(proc.Config{Parent: strings.ToLower(parent), StateDir: filepath.Join(filepath.Dir(dir), "groups")})
	s.Must(err)
	group, err := procs.Group("db-2.m1.restore")
	s.Must(err)
	t.Cleanup(func() {
		if err := Discard(context.WithoutCancel(t.Context()), group, s.User, filepath.Join(dir, "restore")); err != nil {
			t.Error(err)
		}
	})
	return Request{
		Dir: filepath.Join(dir, "restore"), User: s.User, Procs: procs, Group: group, Install: s.Install,
		Engine: sourcetest.Plain{Dir: s.Dir}, Place: backup.Place{Database: "db-1"}, Source: from,
		SocketDir: dir, Port: 5432, Superuser: "rdsadmin", DBName: "rdsadmin", Log: slog.New(slog.DiscardHandler),
	}
}

func mustLSN(t testing.TB, text string) lsn.LSN {
	t.Helper()
	at, err := lsn.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
