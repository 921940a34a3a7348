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

	"howdah/internal/host/tree"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/loopdisk"
)

// newEncryptingDorm has its host on a disk of its own, which encrypts directories if options
// say so, and a key for the database db-1.
func newEncryptingDorm(t *testing.T, options ...string) *dorm {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	disk := loopdisk.New(t, "700", options...)
	d := newDorm(t)
	d.Dir = filepath.Join(disk.Dir, "host")
	d.HasStorageKey("db-1")
	return d
}

// A host that cannot encrypt says so, and keeps no data of a database that is to be encrypted.
func TestAHostThatCannotEncrypt(t *testing.T) {
	t.Parallel()
	d := newEncryptingDorm(t)
	d.run()
	testkit.Eventually(t, hosttest.Soon, func() error {
		h, err := state.Get[member.Host](d.Context(), d.Store, state.Host(hosttest.Name))
		if err != nil || h.Value.Encrypts != member.NotEncrypted || !strings.Contains(h.Value.WhyPlain, "has no fscrypt") {
			return errors.Join(fmt.Errorf("the host is %+v", h.Value), err)
		}
		return nil
	})
	a := d.Assignment("db-1", 1)
	a.Encrypted = true
	d.Assign(a)
	d.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.NotEncryptable || r.Patroni || r.Generation != 1 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if empty, err := isEmpty(filepath.Join(d.Dir, "members", a.ID)); err != nil || !empty {
		t.Errorf("something was written: %v", err)
	}
}

// One that can says so; a key of another database opens nothing, and is not given to the kernel.
func TestAKeyThatIsNotTheDirectorys(t *testing.T) {
	t.Parallel()
	d := newEncryptingDorm(t, "-O", "encrypt")
	a := d.Assignment("db-1", 1)
	a.Encrypted = true
	dir := filepath.Join(d.Dir, "members", a.ID)
	d.Must(os.MkdirAll(dir, 0o711))
	d.Must(os.Chmod(d.Dir, 0o711))
	key := bytes.Repeat([]byte{9}, fscrypt.KeySize)
	id, err := fscrypt.AddKey(dir, key)
	d.Must(err)
	d.Must(fscrypt.Encrypt(dir, id))
	_, err = fscrypt.RemoveKey(dir, id)
	d.Must(err)
	d.run()
	d.Assign(a)
	d.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.NoKey || r.Patroni || !strings.Contains(r.Detail, id.String()) {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if d.HasKey(id) {
		t.Error("a key was found all the same")
	}
	testkit.Eventually(t, hosttest.Soon, func() error {
		h, err := state.Get[member.Host](d.Context(), d.Store, state.Host(hosttest.Name))
		if err != nil || h.Value.Encrypts != member.ByKey || h.Value.WhyPlain != "" {
			return fmt.Errorf("%+v, %w", h.Value, err)
		}
		return nil
	})
}

// What is made aside of an encrypted database is encrypted, from the first byte on.
func TestEncryptedAside(t *testing.T) {
	disk := loopdisk.New(t, "32", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hosttest.Name, Dir: disk.Dir, Kind: &sleepers{}}}
	dir := a.Path(jobsDir, "one")
	file := filepath.Join(dir, "file")
	look := func() (id fscrypt.ID) {
		t.Helper()
		id, encrypted, err := fscrypt.Of(dir)
		if state, keyErr := fscrypt.KeyState(dir, id); err != nil || keyErr != nil || !encrypted || state != fscrypt.Present {
			t.Fatalf("%v, %v, %v, %v", encrypted, state, err, keyErr)
		}
		return id
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	// What was written in the clear is thrown away.
	must(os.MkdirAll(dir, 0o711), os.MkdirAll(a.Path(trashDir), 0o700), os.WriteFile(file, nil, 0o600), a.EncryptAside(dir))
	id := look()
	if empty, err := isEmpty(dir); err != nil || !empty {
		t.Errorf("something is left: %v", err)
	}
	// The next agent goes on with what is there, as long as the kernel has the key.
	must(os.WriteFile(file, nil, 0o600), a.EncryptAside(dir))
	if _, err := os.Stat(file); look() != id || err != nil {
		t.Errorf("it was made anew: %v", err)
	}
	busy, err := fscrypt.RemoveKey(disk.Dir, id)
	if must(err, a.EncryptAside(dir)); busy || look() == id {
		t.Error("it has the key of before the reboot")
	}
	id = look()
	must(a.ThrowAway(dir), a.EmptyTrash(t.Context()))
	if state, err := fscrypt.KeyState(disk.Dir, id); err != nil || state != fscrypt.Absent {
		t.Errorf("the key of what was thrown away: %v, %v", state, err)
	}
}

// What cannot be encrypted is not made.
func TestNothingAsideIsInTheClear(t *testing.T) {
	disk := loopdisk.New(t, "32")
	a := &Agent{Config: Config{Name: hosttest.Name, Dir: disk.Dir, Kind: &sleepers{}}}
	if err := a.EncryptAside(disk.Dir); !errors.Is(err, fscrypt.ErrUnsupported) {
		t.Error(err)
	}
}

// What is thrown away takes its key along, however deep it is; data that were on their way to a
// member that runs leave that member's key alone.
func TestTheTrashAndKeys(t *testing.T) {
	disk := loopdisk.New(t, "32", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hosttest.Name, Dir: disk.Dir, Kind: &sleepers{}}}
	id, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	dir, stage, deleted := a.MemberDir("db-1.m1"), a.Path(trashDir, "stage"), a.Path(trashDir, "member")
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), os.MkdirAll(stage, 0o700), fscrypt.Encrypt(dir, id), fscrypt.Encrypt(stage, id)); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(dir, strings.Repeat("d/", tree.Deep+20))
	if err := errors.Join(os.MkdirAll(deep, 0o700), (&trash{a}).remove(t.Context(), stage)); err != nil {
		t.Fatal(err)
	}
	if state, err := fscrypt.KeyState(disk.Dir, id); err != nil || state != fscrypt.Present {
		t.Errorf("the key of a member that is there: %v, %v", state, err)
	}
	if _, err := lockDir(dir, a.Kind.Release); err != nil { // as after a reboot
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, deleted), (&trash{a}).remove(t.Context(), deleted)); err != nil {
		t.Fatal(err)
	}
	if state, err := fscrypt.KeyState(disk.Dir, id); err != nil || state != fscrypt.Absent || tree.Exists(deleted) {
		t.Errorf("after its end: %v, %v", state, err)
	}
}

// An agent that dies after the files of a member are gone, and before its key is, has it removed
// at its next start; the key of a member that is there stays.
func TestAKeyThatOutlivedItsMember(t *testing.T) {
	disk := loopdisk.New(t, "32", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hosttest.Name, Dir: disk.Dir, Kind: &sleepers{}}}
	gone, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{5}, fscrypt.KeySize))
	dir, deleted := a.MemberDir("db-1.m1"), a.Path(trashDir, "member")
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), os.MkdirAll(deleted, 0o700), fscrypt.Encrypt(dir, runs), fscrypt.Encrypt(deleted, gone)); err != nil {
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
	if err := (&trash{a}).remove(ends, deleted); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(deleted); err != nil {
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
