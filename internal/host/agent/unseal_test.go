package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/identity/kms"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit"
	"howdah/internal/testkit/loopdisk"
)

// Data that cannot be looked at for want of their key are not taken for none, nor are those
// of which it cannot even be said whether they are locked.
func TestLockedDataAreHeld(t *testing.T) {
	disk := loopdisk.New(t, "16", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hostName, Dir: disk.Dir, Kind: &Host{}}}
	dir := a.MemberDir("db-1.m1")
	id, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), fscrypt.Encrypt(dir, id), os.MkdirAll(filepath.Join(dir, "data", "global"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(dir, releaseShared); err != nil {
		t.Fatal(err)
	}
	c, ok := (&holdings{agent: a}).copyOf(t.Context(), "db-1.m1")
	if !ok || !strings.Contains(c.Unsettled, "its key is not here") || !c.Locked || !c.Encrypted {
		t.Errorf("%v: %+v", ok, c)
	}
	if err := os.Symlink(dir, a.MemberDir("db-1.m2")); err != nil {
		t.Fatal(err)
	}
	if c, ok := (&holdings{agent: a}).copyOf(t.Context(), "db-1.m2"); !ok || !strings.Contains(c.Unsettled, "cannot be known") {
		t.Errorf("%v: %+v", ok, c)
	}
}

// While somebody looks, no directory is locked: it would look as if it had no data.
func TestNothingIsLockedDuringALook(t *testing.T) {
	t.Parallel()
	w, _ := newEncryptingWorld(t, waits, "-O", "encrypt")
	a, _ := w.run(nil)
	as := w.assignment("db-1", 1)
	as.Encrypted = true
	w.assign(as)
	w.awaits(as.ID, time.Minute, running(1))
	id, _, err := fscrypt.Of(w.memberDir(as.ID))
	w.must(err)
	a.looking.Lock()
	as.Generation, as.Want = 2, member.Stopped
	w.assign(as)
	w.awaits(as.ID, 2*time.Minute, func(r member.Report) error {
		if r.Patroni {
			return errors.New("it runs")
		}
		return nil
	})
	ended := time.Now()
	testkit.Eventually(t, soon, func() error {
		if time.Since(ended) < 10*lookEvery {
			return errors.New("its runner had no time to lock it")
		}
		return nil
	})
	if !w.hasKey(id) {
		t.Error("it was locked during a look")
	}
	a.looking.Unlock()
	w.stopped(as, id)
}

// memberDir is the directory of a member.
func (w *world) memberDir(id string) string { return filepath.Join(w.Dir, "members", id) }

// A restored home is told what a stopped database has, whose directory is locked: its key is
// there for the look, and gone after it. As long as the key cannot be had, the copy is said to
// be there, and nothing is said of it.
func TestARestoredHomeIsToldWhatIsLocked(t *testing.T) {
	t.Parallel()
	if _, err := FindPatroni(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w, _ := newEncryptingWorld(t, "", "-O", "encrypt")
	w.run(func(a *Host) { a.spares.keep = 1 })
	a := w.assignment("db-1", 1)
	a.Encrypted = true
	w.assign(a)
	w.awaits(a.ID, time.Minute, readyBy(member.ByKey))
	id, _, err := fscrypt.Of(w.memberDir(a.ID))
	w.must(err)
	a.Generation, a.Want = 2, member.Stopped
	w.assign(a)
	w.stopped(a, id)
	record, err := state.Get[kms.Storage](w.Context(), w.store, state.StorageKey("db-1"))
	w.must(err)
	_, err = w.store.Commit(w.Context(), state.Delete(record.Key), state.Put(state.Hold("db-1"), regain.Hold{Database: "db-1"}),
		state.Put(state.Restored(), regain.Home{ID: "r1", At: time.Now()}))
	w.must(err)
	told := func(check func(regain.Copy) bool) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			c, err := state.Get[regain.Copy](w.Context(), w.store, state.HeldCopy(hostName, a.ID))
			if err != nil || !check(c.Value) {
				return errors.Join(fmt.Errorf("it was told %+v", c.Value), err)
			}
			return nil
		})
	}
	told(func(c regain.Copy) bool {
		return c.Locked && c.System == "" && strings.Contains(c.Unsettled, "its key is not here: ") && c.Assignment.Generation == 2
	})
	w.put(record.Key, record.Value)
	told(func(c regain.Copy) bool {
		return !c.Locked && c.Encrypted && c.Unsettled == "" && c.System != "" && c.Primary && !c.Running && c.LSN > 0
	})
	w.stopped(a, id)
}

// What was seen of a locked copy counts until its runner opens it again.
func TestALookCountsUntilTheNextStart(t *testing.T) {
	disk := loopdisk.New(t, "16", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hostName, Dir: disk.Dir, Kind: &Host{}}, opened: map[string]int{}, control: &controls{}}
	const member = "db-1.m1"
	dir := a.MemberDir(member)
	id, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), fscrypt.Encrypt(dir, id)); err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(dir, releaseShared); err != nil {
		t.Fatal(err)
	}
	h := &holdings{agent: a, copies: map[string]regain.Copy{member: {}}, sealed: map[string]sealed{
		member: {seen: true, data: true, copy: regain.Copy{System: "7"}},
	}}
	if c, ok := h.copyOf(t.Context(), member); !ok || c.System != "7" {
		t.Errorf("%v: %+v", ok, c)
	}
	a.noteOpened(member)
	if c, ok := h.copyOf(t.Context(), member); !ok || c.System != "" || !c.Locked || !strings.Contains(c.Unsettled, "no control plane is known") {
		t.Errorf("%v: %+v", ok, c)
	}
}
