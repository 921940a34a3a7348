package agent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/osuser"
	"howdah/internal/host/tree"
	"howdah/internal/identity/certs"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
)

// stranger is a user whom an older release had all members run as.
const stranger = 65534

func asRoot(t *testing.T) (*world, *Host) {
	t.Helper()
	w := newWorld(t, waits)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "users for databases: run it as root")
	}
	a, _, err := w.place.open(t.Context())
	w.must(err)
	return w, a
}

func TestEachMemberHasAUserOfItsOwn(t *testing.T) {
	w, a := asRoot(t)
	one, two := w.assignment("db-one", 1).ID, w.assignment("db-two", 1).ID
	w.must(errors.Join(a.MakeMemberDir(one), a.MakeMemberDir(two)))
	first := a.UserOf(one)
	if osuser.Name(first.UID) == "" || first.UID == a.UserOf(two).UID || first.UID == a.spares.user().UID {
		t.Errorf("%+v, %+v, prepared data %+v", first, a.UserOf(two), a.spares.user())
	}
	w.must(a.MakeMemberDir(one))
	if again := a.UserOf(one); *again != *first {
		t.Errorf("it was %+v and is %+v", first, again)
	}
	for _, dir := range []string{a.MemberDir(one), a.SocketDir(one)} {
		info, err := os.Stat(dir)
		w.must(err)
		if uid, _, err := ownerOf(dir); uid != first.UID || info.Mode().Perm() != 0o700 || err != nil {
			t.Errorf("%s: %d, %s, %v", dir, uid, info.Mode(), err)
		}
	}
	if note := a.whyShared(); note != "" {
		t.Errorf("all have one of their own, and it says %q", note)
	}
}

// An agent that was killed may have made a directory, and not given it to anybody.
func TestAMemberWithoutAUserHasNoRights(t *testing.T) {
	w, a := asRoot(t)
	id := w.assignment("db-half", 1).ID
	if u := a.UserOf(id); u == nil || u.Do(func() error { return nil }) == nil {
		t.Errorf("a member that is not there: %+v", u)
	}
	w.must(os.Mkdir(a.MemberDir(id), 0o700))
	if u := a.UserOf(id); u == nil || u.Do(func() error { return nil }) == nil {
		t.Errorf("a member of root's: %+v", u)
	}
	if _, err := (&Member{agent: a.Agent, ID: id}).User().ReadFile("/etc/shadow"); err == nil {
		t.Error("it reads what root reads")
	}
	w.must(a.MakeMemberDir(id))
	if u := a.UserOf(id); osuser.Name(u.UID) == "" {
		t.Errorf("it was not given: %+v", u)
	}
}

// Members that an older release made go on as they are, and it is said.
func TestMembersOfAnOlderReleaseKeepTheirUser(t *testing.T) {
	w, a := asRoot(t)
	old, fresh := w.assignment("db-old", 1).ID, w.assignment("db-new", 1).ID
	was := &postgres.User{Name: "nobody", UID: stranger, GID: stranger}
	w.must(was.GiveDir(a.MemberDir(old)))
	w.must(os.RemoveAll(a.Path("spares")))
	w.must(was.GiveDir(a.Path("spares")))
	w.must(was.MakeDir(a.Path("spares", "15", "ready-1")))

	a, _, err := w.place.open(t.Context())
	w.must(err)
	w.must(errors.Join(a.MakeMemberDir(old), a.MakeMemberDir(fresh)))
	if u := a.UserOf(old); u.UID != stranger || a.SocketDir(old) != a.runDir() {
		t.Errorf("%+v, socket in %s", u, a.SocketDir(old))
	}
	if uid, _, err := ownerOf(a.runDir()); uid != stranger {
		t.Errorf("where its socket is belongs to %d, %v", uid, err)
	}
	if u := a.UserOf(fresh); osuser.Name(u.UID) == "" || a.SocketDir(fresh) == a.runDir() {
		t.Errorf("the new one: %+v, socket in %s", u, a.SocketDir(fresh))
	}
	if note := a.whyShared(); !strings.Contains(note, old) {
		t.Errorf("it says %q", note)
	}
	left, err := filepath.Glob(a.Path("spares", "*", "*"))
	if u := a.spares.user(); err != nil || len(left) > 0 || osuser.Name(u.UID) == "" {
		t.Errorf("prepared data that another user may have changed: %v, %+v, %v", left, u, err)
	}
}

// Prepared data become the member's, and are nobody else's on the way.
func TestPreparedDataAreHandedOver(t *testing.T) {
	w, a := asRoot(t)
	id := w.assignment("db-data", 1).ID
	w.must(a.MakeMemberDir(id))
	w.must(a.UserOf(id).GiveDir(a.handedPath(id)))
	w.must(a.spares.hand(id, 15))
	if tree.Exists(filepath.Join(a.handedPath(id), newData)) {
		t.Fatal("there was nothing to hand over")
	}
	spare := a.spares.user()
	w.must(spare.MakeDir(a.spares.dir(15)))
	ready := filepath.Join(a.spares.dir(15), "ready-1")
	w.must(spare.MakeDir(filepath.Join(ready, "global")))
	w.must(spare.ReplaceFile(filepath.Join(ready, "global", "pg_control"), []byte("x"), 0o600))
	// A kill between the two renames.
	w.must(os.Rename(ready, a.stagePath(id)))
	w.must(a.spares.hand(id, 15))
	w.must(a.spares.hand(id, 15))
	for _, name := range []string{"", "global", "global/pg_control"} {
		path := filepath.Join(a.handedPath(id), newData, name)
		info, err := os.Lstat(path)
		w.must(err)
		if uid, gid := owners(info); uid != a.UserOf(id).UID || gid != uid {
			t.Errorf("%s belongs to %d, %d", path, uid, gid)
		}
	}
	w.must(a.closeHandover(id))
	if tree.Exists(a.handedPath(id)) || tree.Exists(a.stagePath(id)) {
		t.Error("the place is still there")
	}

	w.must(spare.MakeDir(ready))
	w.must(os.WriteFile(a.assignedPath(id), nil, 0o600))
	w.must(os.Link(a.assignedPath(id), filepath.Join(ready, "link")))
	w.must(a.UserOf(id).GiveDir(a.handedPath(id)))
	if err := a.spares.hand(id, 15); !errors.Is(err, tree.ErrHardLink) {
		t.Errorf("a file of root's among them: %v", err)
	}
}

// A member's user may lead root to another database's server: root says nothing to it.
func TestRootTalksToNoOtherServer(t *testing.T) {
	w, a := asRoot(t)
	told := w.assignment("db-thief", 1)
	w.must(a.MakeMemberDir(told.ID))
	thief := a.UserOf(told.ID)

	theirs := filepath.Join(t.TempDir(), "socket") // of a server of root's
	listener, err := net.Listen("unix", theirs)
	w.must(err)
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
	socket := socketOf(a, told)
	w.must(thief.Do(func() error { return os.Symlink(theirs, socket) }))
	if conn, err := a.admin(t.Context(), told); !errors.Is(err, errOther) {
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
	w, a := asRoot(t)
	id := w.assignment("db-reader", 1).ID
	w.must(a.MakeMemberDir(id))
	user := a.UserOf(id)
	secret := filepath.Join(a.Dir, "secret")
	w.must(os.MkdirAll(filepath.Join(secret, "global"), 0o700))
	w.must(os.MkdirAll(filepath.Join(secret, "pg_wal"), 0o700))
	w.must(os.WriteFile(filepath.Join(secret, "global", "pg_control"), make([]byte, 8192), 0o600))
	w.must(os.WriteFile(filepath.Join(secret, "pg_wal", "000000010000000000000001"), nil, 0o600))
	pair, err := certs.Load(w.CertDir)
	w.must(err)
	w.must(pair.Write(secret))
	for _, name := range []string{patroni.DataDir, patroni.CertDir} {
		w.must(user.Do(func() error { return os.Symlink(secret, filepath.Join(a.MemberDir(id), name)) }))
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
