package agent

import (
	"errors"
	"os"
	"strings"
	"testing"

	"howdah/internal/host/osuser"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
)

// stranger is a user whom an older release had all members run as.
const stranger = 65534

func asRoot(t *testing.T) (*dorm, *Agent) {
	t.Helper()
	d := newDorm(t)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "users for members: run it as root")
	}
	return d, d.open()
}

func TestEachMemberHasAUserOfItsOwn(t *testing.T) {
	d, a := asRoot(t)
	one, two := d.Assignment("db-one", 1).ID, d.Assignment("db-two", 1).ID
	d.Must(errors.Join(a.MakeMemberDir(one), a.MakeMemberDir(two)))
	first := a.UserOf(one)
	if osuser.Name(first.UID) == "" || first.UID == a.UserOf(two).UID {
		t.Errorf("%+v, %+v", first, a.UserOf(two))
	}
	d.Must(a.MakeMemberDir(one))
	if again := a.UserOf(one); *again != *first {
		t.Errorf("it was %+v and is %+v", first, again)
	}
	for _, dir := range []string{a.MemberDir(one), a.SocketDir(one)} {
		info, err := os.Stat(dir)
		d.Must(err)
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
	d, a := asRoot(t)
	id := d.Assignment("db-half", 1).ID
	if u := a.UserOf(id); u == nil || u.Do(func() error { return nil }) == nil {
		t.Errorf("a member that is not there: %+v", u)
	}
	d.Must(os.Mkdir(a.MemberDir(id), 0o700))
	if u := a.UserOf(id); u == nil || u.Do(func() error { return nil }) == nil {
		t.Errorf("a member of root's: %+v", u)
	}
	if _, err := (&Member{agent: a, ID: id}).User().ReadFile("/etc/shadow"); err == nil {
		t.Error("it reads what root reads")
	}
	d.Must(a.MakeMemberDir(id))
	if u := a.UserOf(id); osuser.Name(u.UID) == "" {
		t.Errorf("it was not given: %+v", u)
	}
}

// Members that an older release made go on as they are, and it is said.
func TestMembersOfAnOlderReleaseKeepTheirUser(t *testing.T) {
	d, a := asRoot(t)
	old, fresh := d.Assignment("db-old", 1).ID, d.Assignment("db-new", 1).ID
	was := &owner.User{Name: "nobody", UID: stranger, GID: stranger}
	d.Must(was.GiveDir(a.MemberDir(old)))

	a = d.open()
	d.Must(errors.Join(a.MakeMemberDir(old), a.MakeMemberDir(fresh)))
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
}
