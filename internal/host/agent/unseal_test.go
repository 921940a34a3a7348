package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/host/agent/plane"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/loopdisk"
)

// Data that cannot be looked at for want of their key are not taken for none, nor are those
// of which it cannot even be said whether they are locked.
func TestLockedDataAreHeld(t *testing.T) {
	disk := loopdisk.New(t, "16", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hosttest.Name, Dir: disk.Dir, Kind: &sleepers{}}}
	dir := a.MemberDir("db-1.m1")
	id, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), fscrypt.Encrypt(dir, id), os.MkdirAll(filepath.Join(dir, "data", "global"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(dir, a.Kind.Release); err != nil {
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
	d := newEncryptingDorm(t, "-O", "encrypt")
	d.run()
	a := d.agent
	as := d.Assignment("db-1", 1)
	as.Encrypted = true
	d.Assign(as)
	d.Awaits(as.ID, time.Minute, hosttest.Running(1))
	id, _, err := fscrypt.Of(d.MemberDir(as.ID))
	d.Must(err)
	a.looking.Lock()
	as.Generation, as.Want = 2, member.Stopped
	d.Assign(as)
	d.Awaits(as.ID, 2*time.Minute, func(r member.Report) error {
		if r.Patroni {
			return errors.New("it runs")
		}
		return nil
	})
	ended := time.Now()
	testkit.Eventually(t, hosttest.Soon, func() error {
		if time.Since(ended) < 10*lookEvery {
			return errors.New("its runner had no time to lock it")
		}
		return nil
	})
	if !d.HasKey(id) {
		t.Error("it was locked during a look")
	}
	a.looking.Unlock()
	d.Stopped(as, id)
}

// What was seen of a locked copy counts until its member opens it again.
func TestALookCountsUntilTheNextStart(t *testing.T) {
	disk := loopdisk.New(t, "16", "-O", "encrypt")
	a := &Agent{Config: Config{Name: hosttest.Name, Dir: disk.Dir, Kind: &sleepers{}}, opened: map[string]int{}, planes: &plane.Planes{}}
	const member = "db-1.m1"
	dir := a.MemberDir(member)
	id, err := fscrypt.AddKey(disk.Dir, bytes.Repeat([]byte{4}, fscrypt.KeySize))
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), fscrypt.Encrypt(dir, id)); err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(dir, a.Kind.Release); err != nil {
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
