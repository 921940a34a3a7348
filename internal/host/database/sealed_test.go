package database

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/identity/kms"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
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
	w.HasStorageKey("db-1")
	return w, disk
}

// onDisk reports whether a text is in the image of a disk.
func (w *world) onDisk(disk loopdisk.Disk, text string) bool {
	w.Helper()
	unix.Sync()
	image, err := os.ReadFile(disk.Image)
	w.Must(err)
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

// The whole life of a database with encrypted storage: nothing of it can be read on the disk,
// the key is in the kernel while it runs, and nothing starts without it.
func TestTheLifeOfAnEncryptedDatabase(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w, disk := newEncryptingWorld(t, "", "-O", "encrypt")
	_, stop := w.run(func(a *Host) { a.spares.Keep = 1 })
	a := w.Assignment("db-1", 1)
	verifier, err := scram.Verifier("secret-password")
	w.Must(err)
	a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 1, Database: "works"}
	a.Cluster.Parameters = map[string]string{"log_statement": "all", "work_mem": "64kB"}
	a.Encrypted = true
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.OwnerSerial != a.Owner.Serial {
			return fmt.Errorf("the owner has no database yet: %+v", r)
		}
		return readyBy(member.ByKey)(r)
	})
	id, encrypted, err := fscrypt.Of(filepath.Join(w.Dir, "members", a.ID))
	if err != nil || !encrypted {
		t.Fatalf("the directory of the member is encrypted: %v, %v", encrypted, err)
	}
	conn := w.connect(a)
	w.exec(conn, "CREATE TABLE t AS SELECT '"+inTheClear+"' || n AS text, repeat('x', 100) AS more FROM generate_series(1, 5000) n")
	w.exec(conn, "SELECT text FROM t ORDER BY more, text") // on temporary files
	conn.Close(w.Context())

	a.Generation, a.Want = 2, member.Stopped
	w.Assign(a)
	w.Stopped(a, id)
	if w.onDisk(disk, inTheClear) {
		t.Error("what users wrote is on the disk in the clear")
	}
	if text, err := os.ReadFile(w.AssignedPath(a.ID)); err != nil || !bytes.Contains(text, []byte(`"encrypted":true`)) {
		t.Errorf("what the host remembers: %s, %v", text, err)
	}

	a.Generation, a.Want = 3, member.Running
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, readyBy(member.ByKey))

	// The host goes down; when it comes up nobody has the key.
	stop()
	w.Must(StopHost(w.Context(), w.HomeID, hosttest.Name, w.Dir, false))
	if w.HasKey(id) {
		t.Error("the key is in the kernel while nothing runs")
	}
	disk.Unmount()
	disk.Mount(t)
	record, err := state.Get[kms.Storage](w.Context(), w.Store, state.StorageKey("db-1"))
	w.Must(err)
	_, err = w.Store.Commit(w.Context(), state.Delete(record.Key))
	w.Must(err)
	w.run(func(a *Host) { a.spares.Keep = 0 })
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.NoKey || r.Patroni {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	w.Put(record.Key, record.Value)
	w.Awaits(a.ID, 2*time.Minute, readyBy(member.ByKey))
	conn = w.connect(a)
	var rows int
	w.Must(conn.QueryRow(w.Context(), "SELECT count(*) FROM t").Scan(&rows))
	conn.Close(w.Context())
	if rows != 5000 {
		t.Errorf("%d rows are left", rows)
	}

	a.Generation, a.Want = 4, member.Absent
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Gone {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	testkit.Eventually(t, time.Minute, func() error {
		left, err := os.ReadDir(w.TrashDir())
		if err != nil || len(left) > 0 || w.HasKey(id) {
			return errors.Join(fmt.Errorf("left: %v; its key is in the kernel: %v", left, w.HasKey(id)), err)
		}
		return nil
	})
}

// A restored home is told what a stopped database has, whose directory is locked: its key is
// there for the look, and gone after it. As long as the key cannot be had, the copy is said to
// be there, and nothing is said of it.
func TestARestoredHomeIsToldWhatIsLocked(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w, _ := newEncryptingWorld(t, "", "-O", "encrypt")
	w.run(func(a *Host) { a.spares.Keep = 1 })
	a := w.Assignment("db-1", 1)
	a.Encrypted = true
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, readyBy(member.ByKey))
	id, _, err := fscrypt.Of(w.MemberDir(a.ID))
	w.Must(err)
	a.Generation, a.Want = 2, member.Stopped
	w.Assign(a)
	w.Stopped(a, id)
	record, err := state.Get[kms.Storage](w.Context(), w.Store, state.StorageKey("db-1"))
	w.Must(err)
	_, err = w.Store.Commit(w.Context(), state.Delete(record.Key), state.Put(state.Hold("db-1"), regain.Hold{Database: "db-1"}),
		state.Put(state.Restored(), regain.Home{ID: "r1", At: time.Now()}))
	w.Must(err)
	told := func(check func(regain.Copy) bool) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			c, err := state.Get[regain.Copy](w.Context(), w.Store, state.HeldCopy(hosttest.Name, a.ID))
			if err != nil || !check(c.Value) {
				return errors.Join(fmt.Errorf("it was told %+v", c.Value), err)
			}
			return nil
		})
	}
	told(func(c regain.Copy) bool {
		return c.Locked && c.System == "" && strings.Contains(c.Unsettled, "its key is not here: ") && c.Assignment.Generation == 2
	})
	w.Put(record.Key, record.Value)
	told(func(c regain.Copy) bool {
		return !c.Locked && c.Encrypted && c.Unsettled == "" && c.System != "" && c.Primary && !c.Running && c.LSN > 0
	})
	w.Stopped(a, id)
}
