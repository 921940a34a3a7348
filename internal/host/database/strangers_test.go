package database

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/identity/certs"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
)

func rootWorld(t *testing.T) (*world, *Host) {
	t.Helper()
	w := newWorld(t, waits)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "users for databases: run it as root")
	}
	a := w.open()
	return w, a
}

// A member's user may lead root to another database's server: root says nothing to it.
func TestRootTalksToNoOtherServer(t *testing.T) {
	t.Parallel()
	w, a := rootWorld(t)
	told := w.Assignment("db-thief", 1)
	w.Must(a.MakeMemberDir(told.ID))
	thief := a.UserOf(told.ID)

	theirs := filepath.Join(t.TempDir(), "socket") // of a server of root's
	listener, err := net.Listen("unix", theirs)
	w.Must(err)
	defer listener.Close()
	heard := make(chan int, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		n, _ := conn.Read(make([]byte, 1))
		heard <- n
	}()
	socket := dial.Socket(a.Agent, told)
	w.Must(thief.Do(func() error { return os.Symlink(theirs, socket) }))
	if conn, err := dial.Admin(t.Context(), a.Agent, told); !errors.Is(err, dial.ErrOther) {
		t.Errorf("connection %v, %v", conn, err)
	}
	select {
	case n := <-heard:
		if n > 0 {
			t.Error("something was said to it")
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody came, so the test shows nothing")
	}
}

// What a member's user puts in the place of files that root reads leads to nothing that
// only root may read.
func TestRootReadsNothingForAMembersUser(t *testing.T) {
	t.Parallel()
	w, a := rootWorld(t)
	id := w.Assignment("db-reader", 1).ID
	w.Must(a.MakeMemberDir(id))
	user := a.UserOf(id)
	secret := filepath.Join(a.Dir, "secret")
	w.Must(os.MkdirAll(filepath.Join(secret, "global"), 0o700))
	w.Must(os.MkdirAll(filepath.Join(secret, "pg_wal"), 0o700))
	w.Must(os.WriteFile(filepath.Join(secret, "global", "pg_control"), make([]byte, 8192), 0o600))
	w.Must(os.WriteFile(filepath.Join(secret, "pg_wal", "000000010000000000000001"), nil, 0o600))
	pair, err := certs.Load(w.CertDir)
	w.Must(err)
	w.Must(pair.Write(secret))
	for _, name := range []string{patroni.DataDir, patroni.CertDir} {
		w.Must(user.Do(func() error { return os.Symlink(secret, filepath.Join(a.MemberDir(id), name)) }))
	}
	data := filepath.Join(a.MemberDir(id), patroni.DataDir)
	if _, err := postgres.ReadControl(data); !errors.Is(err, os.ErrPermission) {
		t.Errorf("the control file of another one: %v", err)
	}
	if _, _, err := postgres.NewestWAL(data); !errors.Is(err, os.ErrPermission) {
		t.Errorf("the WAL of another one: %v", err)
	}
	if _, err := a.MemberPair(id, patroni.CertDir); !errors.Is(err, os.ErrPermission) {
		t.Errorf("the key of another one: %v", err)
	}
}
