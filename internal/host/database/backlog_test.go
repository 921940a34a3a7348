package database

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit/depth"
)

// A directory of a member's may be anything, and nobody waits for it.
func TestNamesIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(filepath.Join(dir, "a"), nil, 0o600), os.Mkdir(filepath.Join(dir, "none"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if names, err := namesIn(nil, dir); err != nil || !slices.Equal(names, []string{"a", "none", "pipe"}) {
		t.Errorf("%q, %v", names, err)
	}
	if names, err := namesIn(nil, filepath.Join(dir, "none")); err != nil || len(names) > 0 {
		t.Errorf("an empty one: %q, %v", names, err)
	}
	if _, err := namesIn(nil, pipe); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := namesIn(nil, filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

// TestAHostileListOfWAL: whatever a member writes where names of WAL are to be, nothing else is told.
func TestAHostileListOfWAL(t *testing.T) {
	t.Parallel()
	names := namesOf("000000010000000000000003\n../../etc/passwd \x1b[31m 00000002.history 0000000100000000000000zz\n0000000z.history\n")
	if want := []string{"000000010000000000000003", "00000002.history"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if n := len(namesOf(strings.Repeat("000000010000000000000003\n", mostNames+1))); n != mostNames {
		t.Errorf("%d names", n)
	}
}

// TestABacklogOfAHostileMember has only what can be names of WAL, and is forgotten by name.
func TestABacklogOfAHostileMember(t *testing.T) {
	t.Parallel()
	w, _, c := idleArchiver(t)
	status := filepath.Join(c.dataDir, "pg_wal", "archive_status")
	w.Must(errors.Join(c.User().MakeDir(status), c.User().MakeDir(c.foreignPath())))
	const one, two = "000000010000000000000001", "000000010000000000000002"
	for _, path := range []string{
		filepath.Join(status, two+".ready"), filepath.Join(status, one+".done"), filepath.Join(c.foreignPath(), one), filepath.Join(c.foreignPath(), "\x1b[31m"),
	} {
		w.Must(c.User().ReplaceFile(path, nil, 0o600))
	}
	w.Must(c.User().ReplaceFile(c.brokenPath(), []byte(one+"\nnothing\n"+two+"\n"), 0o600))
	b, err := c.backlog()
	w.Must(err)
	if !slices.Equal(b.Ready, []string{two}) || !slices.Equal(b.Broken, []string{one, two}) || !slices.Equal(b.Foreign, []string{one}) {
		t.Errorf("%q", b)
	}
	w.Must(c.forgetBroken([]string{one}))
	if b, err = c.backlog(); err != nil || !slices.Equal(b.Broken, []string{two}) || len(b.Foreign) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	w.Must(os.Remove(c.brokenPath()))
	w.Must(syscall.Mkfifo(c.brokenPath(), 0o600))
	if _, err := c.backlog(); err == nil {
		t.Error("a pipe is read as a list")
	}
}

// TestWhatAStoppedServerHasNotArchived: only a primary that was shut down in good order has archived all.
func TestWhatAStoppedServerHasNotArchived(t *testing.T) {
	t.Parallel()
	w, _, c := idleArchiver(t)
	if why := c.unarchived(); why != "" {
		t.Errorf("without data: %s", why)
	}
	status, control := filepath.Join(c.dataDir, "pg_wal", "archive_status"), filepath.Join(c.dataDir, "global", "pg_control")
	w.Must(errors.Join(c.User().MakeDir(status), c.User().MakeDir(filepath.Dir(control))))
	for _, file := range []string{"000000010000000000000001.done", "\x1b[31m.ready"} {
		w.Must(c.User().ReplaceFile(filepath.Join(status, file), nil, 0o600))
	}
	is := func(state postgres.State) string {
		w.Must(c.User().ReplaceFile(control, controlSays(state), 0o600))
		return c.unarchived()
	}
	for state, want := range map[postgres.State]string{
		postgres.ShutDown: "", postgres.ShutDownInRecovery: "", postgres.InArchiveRecovery: "",
		postgres.InProduction: "not shut down in good order: it is in production", postgres.ShuttingDown: "it is shutting down", postgres.InCrashRecovery: "it is in crash",
	} {
		if why := is(state); !strings.Contains(why, want) || (why == "") != (want == "") {
			t.Errorf("%s: %q", state, why)
		}
	}
	w.Must(c.User().ReplaceFile(filepath.Join(status, "000000010000000000000002.ready"), nil, 0o600))
	if why := is(postgres.ShutDown); why != "WAL waits to be archived, from 000000010000000000000002 on" {
		t.Errorf("%q", why)
	}
	if why := is(postgres.ShutDownInRecovery); why != "" {
		t.Errorf("of a standby: %q", why)
	}
	w.Must(os.Remove(filepath.Join(status, "000000010000000000000002.ready")))
	w.Must(errors.Join(c.User().MakeDir(c.foreignPath()), c.User().ReplaceFile(filepath.Join(c.foreignPath(), "000000010000000000000004"), nil, 0o600)))
	if why := is(postgres.ShutDown); why != "WAL was given up, from 000000010000000000000004 on" {
		t.Errorf("%q", why)
	}
	w.Must(c.User().ReplaceFile(c.brokenPath(), []byte("000000010000000000000003\n"), 0o600))
	if why := is(postgres.ShutDown); why != "WAL was given up, from 000000010000000000000003 on" {
		t.Errorf("%q", why)
	}
	w.Must(c.User().ReplaceFile(control, []byte("short"), 0o600))
	if why := c.unarchived(); !strings.Contains(why, "read control file") {
		t.Errorf("%q", why)
	}
}

// idleArchiver is that of a member which was never started.
func idleArchiver(t *testing.T) (*world, *Host, *archiver) {
	t.Helper()
	w := newWorld(t, waits)
	h := w.open()
	c := unstarted(h, "db-1.m1").archiver
	w.Must(h.Give(h.MemberDir(c.ID)))
	return w, h, c
}

// controlSays is the begin of a control file.
func controlSays(state postgres.State) []byte {
	var head [52]byte
	binary.NativeEndian.PutUint32(head[16:], uint32(state))
	return head[:]
}

// TestWhoStopsForGoodLetsTheArchiveHaveTime, and less of it than its own patience.
func TestWhoStopsForGoodLetsTheArchiveHaveTime(t *testing.T) {
	t.Parallel()
	w, h, c := idleArchiver(t)
	w.Must(c.User().MakeDir(h.backupDir(c.ID)))
	path := filepath.Join(h.backupDir(c.ID), backup.Patience)
	c.patient()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a member that archives nothing: %v", err)
	}
	c.Want.Archive = &member.Archive{}
	before := time.Now().Unix()
	c.patient()
	text, err := os.ReadFile(path)
	w.Must(err)
	until, err := strconv.ParseInt(strings.TrimSuffix(string(text), "\n"), 10, 64)
	if margin := int64(stopTimeout / time.Second); err != nil || until < before+20 || until > time.Now().Unix()+margin-30 {
		t.Errorf("%q at %d: %v", text, before, err)
	}
}

// TestAnEncryptedMemberSaysWhatItsArchiveLacks, also when its storage is locked, which is not taken for
// storage without data.
func TestAnEncryptedMemberSaysWhatItsArchiveLacks(t *testing.T) {
	depth.Deep(t)
	t.Parallel()
	w, _ := newEncryptingWorld(t, "", "-O", "encrypt")
	a := archiving(t, w)
	a.dir = filepath.Join(w.Home.Dir, "repository")
	w.Repository("main", a.dir)
	a.Encrypted = true
	h, stop, conn := a.serves()
	a.backup(h, backupmodel.Full)
	id, encrypted, err := fscrypt.Of(h.MemberDir(a.ID))
	if err != nil || !encrypted {
		t.Fatalf("the directory of the member is encrypted: %v, %v", encrypted, err)
	}
	wants := a.Assignment
	asks := func(want member.Want) member.Assignment {
		wants.Generation, wants.Want = wants.Generation+1, want
		a.Assign(wants)
		return wants
	}

	a.Must(os.Rename(a.dir, a.dir+".away"))
	a.fillWAL(conn, 1)
	stopped := asks(member.Stopped)
	a.Stopped(stopped, id)
	a.stopped(stopped, "WAL waits to be archived")

	a.Must(os.Rename(a.dir+".away", a.dir))
	asks(member.Running)
	a.ready(2)
	a.whole(a.admin(h))
	stopped = asks(member.Stopped)
	a.Stopped(stopped, id)
	a.stopped(stopped, "")

	stop()
	_, stop = a.run(func(h *Host) { h.spares.Keep = 0 })
	defer stop()
	a.stopped(stopped, "locked before anybody looked")
}
