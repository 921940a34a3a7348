package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/postgres"
	"howdah/internal/osuser"
	"howdah/internal/testkit"
)

// stranger is a user whom an older release had all members run as.
const stranger = 65534

func asRoot(t *testing.T) (*world, *Agent) {
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
	w.must(errors.Join(a.makeMemberDir(one), a.makeMemberDir(two)))
	first := a.userOf(one)
	if osuser.Name(first.UID) == "" || first.UID == a.userOf(two).UID || first.UID == a.spares.user().UID {
		t.Errorf("%+v, %+v, prepared data %+v", first, a.userOf(two), a.spares.user())
	}
	w.must(a.makeMemberDir(one))
	if again := a.userOf(one); *again != *first {
		t.Errorf("it was %+v and is %+v", first, again)
	}
	for _, dir := range []string{a.memberDir(one), a.socketDir(one)} {
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
	if u := a.userOf(id); u == nil || u.Do(func() error { return nil }) == nil {
		t.Errorf("a member that is not there: %+v", u)
	}
	w.must(os.Mkdir(a.memberDir(id), 0o700))
	if u := a.userOf(id); u == nil || u.Do(func() error { return nil }) == nil {
		t.Errorf("a member of root's: %+v", u)
	}
	if _, err := (&runner{agent: a, id: id}).user().ReadFile("/etc/shadow"); err == nil {
		t.Error("it reads what root reads")
	}
	w.must(a.makeMemberDir(id))
	if u := a.userOf(id); osuser.Name(u.UID) == "" {
		t.Errorf("it was not given: %+v", u)
	}
}

// Members that an older release made go on as they are, and it is said.
func TestMembersOfAnOlderReleaseKeepTheirUser(t *testing.T) {
	w, a := asRoot(t)
	old, fresh := w.assignment("db-old", 1).ID, w.assignment("db-new", 1).ID
	was := &postgres.User{Name: "nobody", UID: stranger, GID: stranger}
	w.must(was.GiveDir(a.memberDir(old)))
	w.must(os.RemoveAll(a.path("spares")))
	w.must(was.GiveDir(a.path("spares")))
	w.must(was.MakeDir(a.path("spares", "15", "ready-1")))

	a, _, err := w.place.open(t.Context())
	w.must(err)
	w.must(errors.Join(a.makeMemberDir(old), a.makeMemberDir(fresh)))
	if u := a.userOf(old); u.UID != stranger || a.socketDir(old) != a.runDir() {
		t.Errorf("%+v, socket in %s", u, a.socketDir(old))
	}
	if uid, _, err := ownerOf(a.runDir()); uid != stranger {
		t.Errorf("where its socket is belongs to %d, %v", uid, err)
	}
	if u := a.userOf(fresh); osuser.Name(u.UID) == "" || a.socketDir(fresh) == a.runDir() {
		t.Errorf("the new one: %+v, socket in %s", u, a.socketDir(fresh))
	}
	if note := a.whyShared(); !strings.Contains(note, old) {
		t.Errorf("it says %q", note)
	}
	left, err := filepath.Glob(a.path("spares", "*", "*"))
	if u := a.spares.user(); err != nil || len(left) > 0 || osuser.Name(u.UID) == "" {
		t.Errorf("prepared data that another user may have changed: %v, %+v, %v", left, u, err)
	}
}

// Prepared data become the member's, and are nobody else's on the way.
func TestPreparedDataAreHandedOver(t *testing.T) {
	w, a := asRoot(t)
	id := w.assignment("db-data", 1).ID
	w.must(a.makeMemberDir(id))
	w.must(a.userOf(id).GiveDir(a.handedPath(id)))
	w.must(a.spares.hand(id, 15))
	if exists(filepath.Join(a.handedPath(id), newData)) {
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
		if uid, gid := owners(info); uid != a.userOf(id).UID || gid != uid {
			t.Errorf("%s belongs to %d, %d", path, uid, gid)
		}
	}
	w.must(a.closeHandover(id))
	if exists(a.handedPath(id)) || exists(a.stagePath(id)) {
		t.Error("the place is still there")
	}

	w.must(spare.MakeDir(ready))
	w.must(os.WriteFile(a.assignedPath(id), nil, 0o600))
	w.must(os.Link(a.assignedPath(id), filepath.Join(ready, "link")))
	w.must(a.userOf(id).GiveDir(a.handedPath(id)))
	if err := a.spares.hand(id, 15); !errors.Is(err, errHardLink) {
		t.Errorf("a file of root's among them: %v", err)
	}
}
