package spare

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/agent/agenttest"
	"howdah/internal/host/osuser"
	"howdah/internal/host/tree"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/loopdisk"
	"howdah/internal/testkit/pgversion"
)

// opened is a host whose keeper does not run.
func opened(t *testing.T) (*hosttest.Site, *Keeper) {
	t.Helper()
	w := hosttest.New(t, 0)
	s := New(agenttest.Open(w, Dirs()...))
	w.Must(s.Open())
	return w, s
}

func rooted(t *testing.T) (*hosttest.Site, *Keeper) {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Missing(t, "users for members: run it as root")
	}
	return opened(t)
}

// onBtrfs has the host on a disk of its own, which holds limits.
func onBtrfs(t *testing.T) (*hosttest.Site, *Keeper) {
	t.Helper()
	testkit.NeedRoot(t)
	disk := loopdisk.NewBtrfs(t, "2048")
	w := hosttest.New(t, 0)
	w.Dir = filepath.Join(disk.Dir, "host")
	w.Must(os.Mkdir(w.Dir, 0o755))
	s := New(agenttest.Open(w, Dirs()...))
	w.Must(s.Open())
	return w, s
}

// A preparation that was killed leaves shared memory that nobody would find again without
// its data directory: it goes with that.
func TestWhatAKilledPreparationLeavesIsRemoved(t *testing.T) {
	w, s := opened(t)
	install, err := postgres.Find(pgversion.Major())
	w.Must(err)
	parent := s.Dir(install.Major)
	user := s.User()
	w.Must(user.GiveDir(parent))
	dir := filepath.Join(parent, "making-1")
	w.Must(postgres.Prepare(t.Context(), install, user, dir))
	cmd := exec.Command(install.Program("postgres"), "--single", "-D", dir, "rdsadmin")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if user != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user.UID), Gid: uint32(user.GID)}
	}
	stdin, err := cmd.StdinPipe() // it waits for statements
	w.Must(err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	w.Must(err)
	testkit.Start(t, cmd)
	// It names its segment before the segment says whose it is. By its prompt both are there.
	_, err = bufio.NewReader(stdout).ReadString('>')
	w.Must(err)
	text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	w.Must(err)
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 || len(strings.Fields(lines[6])) != 2 {
		t.Fatalf("no shared memory: %q", text)
	}
	segment, err := strconv.Atoi(strings.Fields(lines[6])[1])
	w.Must(err)
	w.Must(cmd.Process.Kill())
	_ = cmd.Wait() // it says that it was killed
	if _, err := unix.SysvShmCtl(segment, unix.IPC_STAT, new(unix.SysvShmDesc)); err != nil {
		t.Fatalf("shared memory %d: %v", segment, err)
	}
	s.dropHalfMade()
	if _, err := unix.SysvShmCtl(segment, unix.IPC_STAT, new(unix.SysvShmDesc)); err == nil {
		t.Errorf("shared memory %d is left", segment)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data: %v", err)
	}
}

// What a member's user put into the place where it is handed data is left to the trash: the
// member does not wait until it is removed.
func TestThePlaceOfDataIsThrownAwayAtOnce(t *testing.T) {
	w, s := opened(t)
	w.Must(os.MkdirAll(filepath.Join(s.Place("db-1.m1"), "d"), 0o700))
	for range 2 {
		w.Must(s.Close("db-1.m1"))
	}
	if tree.Exists(s.Place("db-1.m1")) {
		t.Error("it is there")
	}
	left, err := filepath.Glob(filepath.Join(s.Agent.TrashPath("db-1.m1-*"), "d"))
	if err != nil || len(left) != 1 {
		t.Errorf("the trash has %v: %v", left, err)
	}
}

// Prepared data become the member's, and are nobody else's on the way.
func TestPreparedDataAreHandedOver(t *testing.T) {
	w, s := rooted(t)
	id := w.Assignment("db-data", 1).ID
	w.Must(s.Agent.MakeMemberDir(id))
	w.Must(s.Agent.UserOf(id).GiveDir(s.Place(id)))
	w.Must(s.Hand(id, 15))
	if tree.Exists(filepath.Join(s.Place(id), newData)) {
		t.Fatal("there was nothing to hand over")
	}
	spare := s.User()
	w.Must(spare.MakeDir(s.Dir(15)))
	ready := filepath.Join(s.Dir(15), "ready-1")
	w.Must(spare.MakeDir(filepath.Join(ready, "global")))
	w.Must(spare.ReplaceFile(filepath.Join(ready, "global", "pg_control"), []byte("x"), 0o600))
	// A kill between the two renames.
	w.Must(os.Rename(ready, s.stagePath(id)))
	w.Must(s.Hand(id, 15))
	w.Must(s.Hand(id, 15))
	for _, name := range []string{"", "global", "global/pg_control"} {
		path := filepath.Join(s.Place(id), newData, name)
		info, err := os.Lstat(path)
		w.Must(err)
		if uid, gid := ownersOf(t, info); uid != s.Agent.UserOf(id).UID || gid != uid {
			t.Errorf("%s belongs to %d, %d", path, uid, gid)
		}
	}
	w.Must(s.Close(id))
	if tree.Exists(s.Place(id)) || tree.Exists(s.stagePath(id)) {
		t.Error("the place is still there")
	}

	w.Must(spare.MakeDir(ready))
	w.Must(os.WriteFile(w.AssignedPath(id), nil, 0o600))
	w.Must(os.Link(w.AssignedPath(id), filepath.Join(ready, "link")))
	w.Must(s.Agent.UserOf(id).GiveDir(s.Place(id)))
	if err := s.Hand(id, 15); !errors.Is(err, tree.ErrHardLink) {
		t.Errorf("a file of root's among them: %v", err)
	}
}

// Prepared data that a user of an older release may have changed are given up. Those of this one
// have a user of their own.
func TestPreparedDataOfAnOlderReleaseAreGivenUp(t *testing.T) {
	w, s := rooted(t)
	id := w.Assignment("db-one", 1).ID
	w.Must(s.Agent.MakeMemberDir(id))
	if own := s.User(); osuser.Name(own.UID) == "" || own.UID == s.Agent.UserOf(id).UID {
		t.Errorf("prepared data %+v, the member %+v", own, s.Agent.UserOf(id))
	}
	const stranger = 65534
	was := &owner.User{Name: "nobody", UID: stranger, GID: stranger}
	w.Must(os.RemoveAll(s.Agent.Path("spares")))
	w.Must(was.GiveDir(s.Agent.Path("spares")))
	w.Must(was.MakeDir(s.Agent.Path("spares", "15", "ready-1")))
	w.Must(s.Open()) // the next agent
	left, err := filepath.Glob(s.Agent.Path("spares", "*", "*"))
	if u := s.User(); err != nil || len(left) > 0 || osuser.Name(u.UID) == "" {
		t.Errorf("prepared data that another user may have changed: %v, %+v, %v", left, u, err)
	}
}

// Prepared data get into a subvolume, belong to the member there, and nothing is left beside it.
func TestPreparedDataAreCopiedIntoASubvolume(t *testing.T) {
	w, s := onBtrfs(t)
	id := "db-1.m1"
	w.Must(s.Agent.MakeMemberDir(id))
	taker := &Taker{Member: agent.NewMember(s.Agent, id), Keeper: s}
	taker.DataDir = filepath.Join(taker.Dir(), "data")
	w.Must(taker.Open())
	spare := s.User()
	ready := filepath.Join(s.Dir(15), "ready-1")
	w.Must(spare.MakeDir(filepath.Join(ready, "global")))
	w.Must(spare.ReplaceFile(filepath.Join(ready, "global", "pg_control"), []byte("x"), 0o600))
	// A kill in the middle of a copy.
	w.Must(s.Agent.UserOf(id).MakeDir(filepath.Join(s.Place(id), newData+partSuffix, "global")))
	w.Must(s.Hand(id, 15))
	w.Must(s.Hand(id, 15))
	// What the script does.
	w.Must(s.Agent.UserOf(id).Do(func() error { return os.Rename(filepath.Join(s.Place(id), newData), taker.DataDir) }))
	for _, name := range []string{"", "global", "global/pg_control"} {
		info, err := os.Lstat(filepath.Join(taker.DataDir, name))
		w.Must(err)
		if uid, _ := ownersOf(t, info); uid != s.Agent.UserOf(id).UID {
			t.Errorf("%q belongs to %d", name, uid)
		}
	}
	w.Must(s.Close(id))
	w.Must(s.Agent.EmptyTrash(t.Context()))
	for _, path := range []string{s.Place(id), s.stagePath(id), s.Agent.Path(handedDir, id)} {
		if tree.Exists(path) {
			t.Errorf("%s is there", path)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.Agent.MemberDir(id), "thrown-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
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
