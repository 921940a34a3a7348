package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/tree"
	"howdah/internal/identity/kms"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit"
	"howdah/internal/testkit/loopdisk"
)

// inTheClear must be found nowhere on the disk.
const inTheClear = "nobody-may-find-this-text"

// newEncryptingWorld has its host on a disk of its own, which encrypts directories if options
// say so, and a key for the database db-1.
func newEncryptingWorld(t *testing.T, script string, options ...string) (*world, loopdisk.Disk) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	disk := loopdisk.New(t, "700", options...)
	w := newWorld(t, script)
	w.Dir = filepath.Join(disk.Dir, "host")
	seal, err := w.home.SealKey()
	w.must(err)
	key, err := kms.New(seal, spec.Scope{Account: "1", Region: "us-east-1"}, time.Now())
	w.must(err)
	storage, err := key.NewStorage(seal, "db-1")
	w.must(err)
	w.put(state.KMSKey("1", "us-east-1", key.ID), key)
	w.put(state.StorageKey("db-1"), storage)
	return w, disk
}

// hasKey reports whether the kernel has the key of a member.
func (w *world) hasKey(id fscrypt.ID) bool {
	w.Helper()
	state, err := fscrypt.KeyState(w.Dir, id)
	w.must(err)
	return state != fscrypt.Absent
}

// onDisk reports whether a text is in the image of a disk.
func (w *world) onDisk(disk loopdisk.Disk, text string) bool {
	w.Helper()
	unix.Sync()
	image, err := os.ReadFile(disk.Image)
	w.must(err)
	return bytes.Contains(image, []byte(text))
}

func readyBy(how member.Encryption) func(member.Report) error {
	return func(r member.Report) error {
		if !r.Ready || r.Encryption != how || r.Problem != member.None {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	}
}

// stopped is content with a member of which nothing runs, and whose key is not in the kernel.
func (w *world) stopped(a member.Assignment, id fscrypt.ID) {
	w.Helper()
	w.awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Patroni || r.Postgres {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	testkit.Eventually(w.T, time.Minute, func() error {
		if w.hasKey(id) {
			return errors.New("its key is in the kernel")
		}
		return nil
	})
}

// The whole life of a database with encrypted storage: nothing of it can be read on the disk,
// the key is in the kernel while it runs, and nothing starts without it.
func TestTheLifeOfAnEncryptedDatabase(t *testing.T) {
	t.Parallel()
	if _, err := FindPatroni(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w, disk := newEncryptingWorld(t, "", "-O", "encrypt")
	_, stop := w.run(func(a *Host) { a.spares.keep = 1 })
	a := w.assignment("db-1", 1)
	verifier, err := scram.Verifier("secret-password")
	w.must(err)
	a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 1, Database: "works"}
	a.Cluster.Parameters = map[string]string{"log_statement": "all", "work_mem": "64kB"}
	a.Encrypted = true
	w.assign(a)
	w.awaits(a.ID, time.Minute, readyBy(member.ByKey))
	id, encrypted, err := fscrypt.Of(filepath.Join(w.Dir, "members", a.ID))
	if err != nil || !encrypted {
		t.Fatalf("the directory of the member is encrypted: %v, %v", encrypted, err)
	}
	conn := w.connect(a)
	w.exec(conn, "CREATE TABLE t AS SELECT '"+inTheClear+"' || n AS text, repeat('x', 100) AS more FROM generate_series(1, 5000) n")
	w.exec(conn, "SELECT text FROM t ORDER BY more, text") // on temporary files
	conn.Close(w.Context())

	a.Generation, a.Want = 2, member.Stopped
	w.assign(a)
	w.stopped(a, id)
	if w.onDisk(disk, inTheClear) {
		t.Error("what users wrote is on the disk in the clear")
	}
	if text, err := os.ReadFile(w.assignedPath(a.ID)); err != nil || !bytes.Contains(text, []byte(`"encrypted":true`)) {
		t.Errorf("what the host remembers: %s, %v", text, err)
	}

	a.Generation, a.Want = 3, member.Running
	w.assign(a)
	w.awaits(a.ID, time.Minute, readyBy(member.ByKey))

	// The host goes down; when it comes up nobody has the key.
	stop()
	w.must(StopHost(w.Context(), w.HomeID, hostName, w.Dir, false))
	if w.hasKey(id) {
		t.Error("the key is in the kernel while nothing runs")
	}
	disk.Unmount()
	disk.Mount(t)
	record, err := state.Get[kms.Storage](w.Context(), w.store, state.StorageKey("db-1"))
	w.must(err)
	_, err = w.store.Commit(w.Context(), state.Delete(record.Key))
	w.must(err)
	w.run(func(a *Host) { a.spares.keep = 0 })
	w.awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.NoKey || r.Patroni {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	w.put(record.Key, record.Value)
	w.awaits(a.ID, 2*time.Minute, readyBy(member.ByKey))
	conn = w.connect(a)
	var rows int
	w.must(conn.QueryRow(w.Context(), "SELECT count(*) FROM t").Scan(&rows))
	conn.Close(w.Context())
	if rows != 5000 {
		t.Errorf("%d rows are left", rows)
	}

	a.Generation, a.Want = 4, member.Absent
	w.assign(a)
	w.awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Gone {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	testkit.Eventually(t, time.Minute, func() error {
		left, err := os.ReadDir(filepath.Join(w.Dir, trashDir))
		if err != nil || len(left) > 0 || w.hasKey(id) {
			return errors.Join(fmt.Errorf("left: %v; its key is in the kernel: %v", left, w.hasKey(id)), err)
		}
		return nil
	})
}

func (w *world) assignedPath(id string) string {
	return filepath.Join(w.Dir, assignedDir, id+".json")
}

// A host that cannot encrypt says so, and keeps no data of a database that is to be encrypted.
func TestAHostThatCannotEncrypt(t *testing.T) {
	t.Parallel()
	w, _ := newEncryptingWorld(t, waits)
	w.run(nil)
	testkit.Eventually(t, soon, func() error {
		h, err := state.Get[member.Host](w.Context(), w.store, state.Host(hostName))
		if err != nil || h.Value.Encrypts != member.NotEncrypted || !strings.Contains(h.Value.WhyPlain, "has no fscrypt") {
			return errors.Join(fmt.Errorf("the host is %+v", h.Value), err)
		}
		return nil
	})
	a := w.assignment("db-1", 1)
	a.Encrypted = true
	w.assign(a)
	w.awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.NotEncryptable || r.Patroni || r.Generation != 1 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if empty, err := isEmpty(filepath.Join(w.Dir, "members", a.ID)); err != nil || !empty {
		t.Errorf("something was written: %v", err)
	}
}

// One that can says so; a key of another database opens nothing, and is not given to the kernel.
func TestAKeyThatIsNotTheDirectorys(t *testing.T) {
	t.Parallel()
	w, _ := newEncryptingWorld(t, waits, "-O", "encrypt")
	a := w.assignment("db-1", 1)
	a.Encrypted = true
	dir := filepath.Join(w.Dir, "members", a.ID)
	w.must(os.MkdirAll(dir, 0o711))
	w.must(os.Chmod(w.Dir, 0o711))
	key := bytes.Repeat([]byte{9}, fscrypt.KeySize)
	id, err := fscrypt.AddKey(dir, key)
	w.must(err)
	w.must(fscrypt.Encrypt(dir, id))
	_, err = fscrypt.RemoveKey(dir, id)
	w.must(err)
	w.run(nil)
	w.assign(a)
	w.awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.NoKey || r.Patroni || !strings.Contains(r.Detail, id.String()) {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if w.hasKey(id) {
		t.Error("a key was found all the same")
	}
	testkit.Eventually(t, soon, func() error {
		h, err := state.Get[member.Host](w.Context(), w.store, state.Host(hostName))
		if err != nil || h.Value.Encrypts != member.ByKey || h.Value.WhyPlain != "" {
			return fmt.Errorf("%+v, %w", h.Value, err)
		}
		return nil
	})
}

func TestCopyEncrypted(t *testing.T) {
	disk := loopdisk.New(t, "16", "-O", "encrypt")
	from := filepath.Join(disk.Dir, "from")
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(from, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("PG_VERSION", "15\n", 0o600)
	write("base/1/1255", strings.Repeat("row", 10000), 0o640)
	id, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(disk.Dir, "to")
	if err := os.MkdirAll(to+partSuffix+"/half", 0o700); err != nil { // of an agent that was killed
		t.Fatal(err)
	}
	if err := copyEncrypted(from, to, id); err != nil {
		t.Fatal(err)
	}
	if is, of, err := fscrypt.Of(filepath.Join(to, "base", "1")); err != nil || !of || is != id {
		t.Errorf("the copy is encrypted: %v, %v", of, err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "base/1/1255")); err != nil || len(text) != 30000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if info, err := os.Stat(filepath.Join(to, "base/1/1255")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode of the copy: %v", err)
	}
	if tree.Exists(filepath.Join(to, "half")) || tree.Exists(to+partSuffix) {
		t.Error("something of an earlier copy is left")
	}
	for name, plant := range map[string]func() error{
		"a link":      func() error { return os.Symlink("/etc/passwd", filepath.Join(from, "odd")) },
		"a hard link": func() error { return os.Link(filepath.Join(from, "PG_VERSION"), filepath.Join(from, "odd")) },
		"a pipe":      func() error { return unix.Mkfifo(filepath.Join(from, "odd"), 0o600) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		again := filepath.Join(disk.Dir, "again")
		if err := copyEncrypted(from, again, id); err == nil || tree.Exists(again) {
			t.Errorf("%s was copied: %v", name, err)
		}
		if err := os.Remove(filepath.Join(from, "odd")); err != nil {
			t.Fatal(err)
		}
	}
}

// What is thrown away takes its key along, however deep it is; data that were on their way to a
// member that runs leave that member's key alone.
func TestTheTrashAndKeys(t *testing.T) {
	disk := loopdisk.New(t, "32", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hostName, Dir: disk.Dir, Kind: &Host{}}}
	id, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	dir, stage, trash := a.MemberDir("db-1.m1"), a.Path(trashDir, "stage"), a.Path(trashDir, "member")
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), os.MkdirAll(stage, 0o700), fscrypt.Encrypt(dir, id), fscrypt.Encrypt(stage, id)); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(dir, strings.Repeat("d/", tree.Deep+20))
	if err := errors.Join(os.MkdirAll(deep, 0o700), a.removeThrown(t.Context(), stage)); err != nil {
		t.Fatal(err)
	}
	if state, err := fscrypt.KeyState(disk.Dir, id); err != nil || state != fscrypt.Present {
		t.Errorf("the key of a member that is there: %v, %v", state, err)
	}
	if _, err := lockDir(dir, releaseShared); err != nil { // as after a reboot
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, trash), a.removeThrown(t.Context(), trash)); err != nil {
		t.Fatal(err)
	}
	if state, err := fscrypt.KeyState(disk.Dir, id); err != nil || state != fscrypt.Absent || tree.Exists(trash) {
		t.Errorf("after its end: %v, %v", state, err)
	}
}

// An agent that dies after the files of a member are gone, and before its key is, has it removed
// at its next start; the key of a member that is there stays.
func TestAKeyThatOutlivedItsMember(t *testing.T) {
	disk := loopdisk.New(t, "32", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hostName, Dir: disk.Dir, Kind: &Host{}}}
	gone, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{5}, fscrypt.KeySize))
	dir, trash := a.MemberDir("db-1.m1"), a.Path(trashDir, "member")
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), os.MkdirAll(trash, 0o700), fscrypt.Encrypt(dir, runs), fscrypt.Encrypt(trash, gone)); err != nil {
		t.Fatal(err)
	}
	// A stage of the member that runs is thrown away, too.
	stage := a.Path(trashDir, "stage")
	if err := errors.Join(os.Mkdir(stage, 0o700), fscrypt.Encrypt(stage, runs)); err != nil {
		t.Fatal(err)
	}
	// It dies when the last file is gone.
	ends, end := context.WithCancel(t.Context())
	end()
	if err := a.removeThrown(ends, trash); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(trash); err != nil {
		t.Fatal(err)
	}
	if now, err := fscrypt.KeyState(disk.Dir, gone); err != nil || now != fscrypt.Present {
		t.Fatalf("its key is gone already: %v, %v", now, err)
	}
	again := &Agent{Config: a.Config}
	if err := again.EmptyTrash(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[fscrypt.ID]fscrypt.State{gone: fscrypt.Absent, runs: fscrypt.Present} {
		if now, err := fscrypt.KeyState(disk.Dir, id); err != nil || now != want {
			t.Errorf("key %s: %v, %v, want %v", id, now, err, want)
		}
	}
	if left, err := os.ReadDir(a.Path(trashDir)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
