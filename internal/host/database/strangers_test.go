package database

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/osuser"
	"howdah/internal/host/tree"
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

// Prepared data that a user of an older release may have changed are given up. Those of this one have
// a user of their own.
func TestPreparedDataOfAnOlderReleaseAreGivenUp(t *testing.T) {
	w, a := rootWorld(t)
	id := w.Assignment("db-one", 1).ID
	w.Must(a.MakeMemberDir(id))
	if own := a.spares.user(); osuser.Name(own.UID) == "" || own.UID == a.UserOf(id).UID {
		t.Errorf("prepared data %+v, the member %+v", own, a.UserOf(id))
	}
	const stranger = 65534
	was := &postgres.User{Name: "nobody", UID: stranger, GID: stranger}
	w.Must(os.RemoveAll(a.Path("spares")))
	w.Must(was.GiveDir(a.Path("spares")))
	w.Must(was.MakeDir(a.Path("spares", "15", "ready-1")))
	a = w.open()
	left, err := filepath.Glob(a.Path("spares", "*", "*"))
	if u := a.spares.user(); err != nil || len(left) > 0 || osuser.Name(u.UID) == "" {
		t.Errorf("prepared data that another user may have changed: %v, %+v, %v", left, u, err)
	}
}

// Prepared data become the member's, and are nobody else's on the way.
func TestPreparedDataAreHandedOver(t *testing.T) {
	w, a := rootWorld(t)
	id := w.Assignment("db-data", 1).ID
	w.Must(a.MakeMemberDir(id))
	w.Must(a.UserOf(id).GiveDir(a.handedPath(id)))
	w.Must(a.spares.hand(id, 15))
	if tree.Exists(filepath.Join(a.handedPath(id), newData)) {
		t.Fatal("there was nothing to hand over")
	}
	spare := a.spares.user()
	w.Must(spare.MakeDir(a.spares.dir(15)))
	ready := filepath.Join(a.spares.dir(15), "ready-1")
	w.Must(spare.MakeDir(filepath.Join(ready, "global")))
	w.Must(spare.ReplaceFile(filepath.Join(ready, "global", "pg_control"), []byte("x"), 0o600))
	// A kill between the two renames.
	w.Must(os.Rename(ready, a.stagePath(id)))
	w.Must(a.spares.hand(id, 15))
	w.Must(a.spares.hand(id, 15))
	for _, name := range []string{"", "global", "global/pg_control"} {
		path := filepath.Join(a.handedPath(id), newData, name)
		info, err := os.Lstat(path)
		w.Must(err)
		if uid, gid := ownersOf(t, info); uid != a.UserOf(id).UID || gid != uid {
			t.Errorf("%s belongs to %d, %d", path, uid, gid)
		}
	}
	w.Must(a.closeHandover(id))
	if tree.Exists(a.handedPath(id)) || tree.Exists(a.stagePath(id)) {
		t.Error("the place is still there")
	}

	w.Must(spare.MakeDir(ready))
	w.Must(os.WriteFile(w.AssignedPath(id), nil, 0o600))
	w.Must(os.Link(w.AssignedPath(id), filepath.Join(ready, "link")))
	w.Must(a.UserOf(id).GiveDir(a.handedPath(id)))
	if err := a.spares.hand(id, 15); !errors.Is(err, tree.ErrHardLink) {
		t.Errorf("a file of root's among them: %v", err)
	}
}

// A member's user may lead root to another database's server: root says nothing to it.
func TestRootTalksToNoOtherServer(t *testing.T) {
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

func ownersOf(t *testing.T, info os.FileInfo) (uid, gid int) {
	t.Helper()
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("nobody has %s", info.Name())
	}
	return int(stat.Uid), int(stat.Gid)
}
