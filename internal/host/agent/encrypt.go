package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/hostapi"
	"howdah/internal/host/pace"
	"howdah/internal/host/tree"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/system/btrfs"
	"howdah/internal/system/fscrypt"
)

// The directory of a member whose storage is encrypted has a key of its own. A control plane
// makes it, and the kernel has it while the member runs: it is on no disk of this host, not
// sealed either, as what opens the seal would lie beside it. So after a reboot nothing is
// started before a control plane answers. Where the file system cannot encrypt directories and
// its disks are encrypted, there is no key.

const (
	// tryDir is where it is tried whether directories can be encrypted.
	tryDir = "try-encryption"
	// triedFor is for how long a host that could not is taken for one that cannot.
	triedFor = time.Minute
	// keyTimeout bounds one control plane's answer.
	keyTimeout = 3 * time.Second
	// encryptedEvery is how often it is looked how a directory is encrypted.
	encryptedEvery = 5 * time.Second
	// lockEvery spaces attempts to remove a key: each writes the file system's caches out.
	lockEvery = 10 * time.Second
)

// ability is what a host can do about encryption, for its description.
type ability struct {
	tried time.Time
	how   member.Encryption
	why   string // it cannot
}

// look finds out how storage can be encrypted; once it can, it is not tried again.
func (b *ability) look(dir string, now time.Time) {
	if b.how != member.NotEncrypted || now.Sub(b.tried) < triedFor {
		return
	}
	b.tried, b.why = now, ""
	err := fscrypt.Try(filepath.Join(dir, tryDir))
	if err == nil {
		b.how = member.ByKey
		return
	}
	byDisk, diskErr := fscrypt.Machine{}.DiskEncrypted(dir)
	if byDisk {
		b.how = member.ByDisk
		return
	}
	if !errors.Is(err, fscrypt.ErrUnsupported) || diskErr != nil {
		b.why = errors.Join(err, diskErr).Error()
		return
	}
	b.why = "the file system of " + dir + " has no fscrypt (ext4 has it after tune2fs -O encrypt), and its disk is not dm-crypt's"
}

// secrecy is how the directory of a member is encrypted. It belongs to the member's goroutine.
type secrecy struct {
	how    member.Encryption // when it was looked last
	looked time.Time
	opens  pace.Backoff // of attempts to get the key
	locked time.Time    // it was tried to remove the key
	done   bool         // the key is removed
}

// look finds out how a directory is encrypted.
func (s *secrecy) look(dir string, now time.Time) {
	if now.Sub(s.looked) < encryptedEvery {
		return
	}
	s.looked = now
	how, err := encryption(dir)
	if err == nil {
		s.how = how
	}
}

// encryption is how a directory is encrypted.
func encryption(dir string) (member.Encryption, error) {
	_, byKey, err := fscrypt.Of(dir)
	if err != nil {
		return member.NotEncrypted, err
	}
	if byKey {
		return member.ByKey, nil
	}
	byDisk, err := fscrypt.Machine{}.DiskEncrypted(dir)
	if byDisk {
		return member.ByDisk, err
	}
	return member.NotEncrypted, err
}

// open has the kernel know the key of the member's directory before anything is looked for or
// written there. It answers whether the member may be started.
func (m *Member) open(ctx context.Context) bool {
	now := time.Now()
	if !m.secrecy.opens.Ready(now) {
		return false
	}
	m.secrecy.done = false
	err := m.unlock(ctx)
	if err == nil {
		m.secrecy.opens, m.secrecy.looked = pace.Backoff{}, time.Time{}
		if m.Problem == member.NoKey || m.Problem == member.NotEncryptable {
			m.Problem, m.Detail = member.None, ""
		}
		return true
	}
	m.secrecy.opens.Attempt(now)
	if ctx.Err() != nil {
		return false
	}
	m.Acted = m.Want.Generation
	m.Problem, m.Detail = member.NoKey, err.Error()
	if errors.Is(err, fscrypt.ErrUnsupported) {
		m.Problem = member.NotEncryptable
	}
	m.Log.Warn("open the encrypted directory", "attempt", m.secrecy.opens.Failures, "error", err)
	return false
}

// unlock opens a directory that is encrypted, and encrypts one that shall be and is empty. What
// was written before it could be encrypted stays as it is: see NotEncryptable.
func (m *Member) unlock(ctx context.Context) error {
	if err := m.agent.MakeMemberDir(m.ID); err != nil {
		return err
	}
	id, encrypted, err := fscrypt.Of(m.Dir())
	if err != nil {
		return err
	}
	if encrypted {
		state, err := fscrypt.KeyState(m.Dir(), id)
		if err != nil || state == fscrypt.Present {
			return err
		}
		return m.giveKey(ctx, wants(m.Dir(), id))
	}
	if !m.Want.Encrypted {
		return nil
	}
	if how, err := encryption(m.Dir()); err != nil || how == member.ByDisk && !m.canByKey() {
		return err
	}
	if empty, err := isEmpty(m.Dir()); err != nil || !empty {
		return err
	}
	if !m.canByKey() {
		return fmt.Errorf("encrypt %s: %w", m.Dir(), fscrypt.ErrUnsupported)
	}
	return m.giveKey(ctx, func(own fscrypt.ID) error { return nil })
}

// canByKey: the file system can encrypt directories.
func (m *Member) canByKey() bool {
	_, err := fscrypt.KeyState(m.Dir(), fscrypt.ID{})
	return err == nil
}

// wants lets only the key of a directory pass.
func wants(dir string, id fscrypt.ID) func(fscrypt.ID) error {
	return func(own fscrypt.ID) error {
		if own != id {
			return fmt.Errorf("%s: %w: it wants key %s, and the control plane has %s", dir, fscrypt.ErrForeign, id, own)
		}
		return nil
	}
}

// giveKey opens the member's directory for good: see Agent.giveKey.
func (m *Member) giveKey(ctx context.Context, pass func(fscrypt.ID) error) error {
	// What was seen of the directory before counts no more from now on.
	m.agent.noteOpened(m.ID)
	return m.agent.giveKey(ctx, m.ID, pass)
}

// giveKey gets a member's key, which has to pass, and gives it to the kernel; an empty
// directory is encrypted with it.
func (a *Agent) giveKey(ctx context.Context, id string, pass func(fscrypt.ID) error) error {
	key, err := a.storageKey(ctx, id)
	if err != nil {
		return fmt.Errorf("get the key of %s: %w", id, err)
	}
	defer clear(key)
	own, err := fscrypt.Identify(key)
	if err != nil {
		return err
	}
	if err := pass(own); err != nil {
		return err
	}
	dir := a.MemberDir(id)
	if _, err := fscrypt.AddKey(dir, key); err != nil {
		return err
	}
	// A directory that is encrypted with it already stays so.
	return fscrypt.Encrypt(dir, own)
}

// storageKey gets a member's key from whichever control plane answers.
func (a *Agent) storageKey(ctx context.Context, id string) ([]byte, error) {
	last := errors.New("no control plane is known")
	for _, c := range a.Controls() {
		limited, cancel := context.WithTimeout(ctx, keyTimeout)
		key, err := c.StorageKey(limited, id)
		cancel()
		if err == nil {
			return key, nil
		}
		last = err
		if errors.Is(err, hostapi.ErrRefused) {
			return nil, err
		}
	}
	return nil, last
}

// EncryptAside has a directory of ours, which the trash gets in the end, be encrypted with a key that
// only the kernel has. What is in it otherwise goes: it was written in the clear, or its key is lost.
// Where the disks are encrypted and directories cannot be, it does nothing.
func (a *Agent) EncryptAside(dir string) error {
	id, encrypted, err := fscrypt.Of(dir)
	if err != nil {
		return err
	}
	if encrypted {
		if state, err := fscrypt.KeyState(dir, id); err != nil || state == fscrypt.Present {
			return err
		}
	}
	_, unable := fscrypt.KeyState(dir, fscrypt.ID{})
	if unable != nil {
		if byDisk, err := (fscrypt.Machine{}).DiskEncrypted(dir); err != nil || byDisk {
			return err
		}
		return fmt.Errorf("encrypt %s: %w", dir, unable)
	}
	if empty, err := isEmpty(dir); err != nil || encrypted || !empty {
		if err := errors.Join(err, a.ThrowAway(dir), home.OpenWay(dir)); err != nil {
			return err
		}
	}
	key := make([]byte, fscrypt.KeySize)
	defer clear(key)
	_, _ = rand.Read(key) // never fails
	own, err := fscrypt.AddKey(dir, key)
	if err != nil {
		return err
	}
	return fscrypt.Encrypt(dir, own)
}

// lock takes the key from the kernel once nothing of the member runs.
func (m *Member) lock() {
	now := time.Now()
	if m.secrecy.done || now.Sub(m.secrecy.locked) < lockEvery {
		return
	}
	if left, err := m.Group.Processes(); err != nil || len(left) > 0 {
		return
	}
	if !m.agent.looking.TryRLock() {
		return // somebody looks at what data are there: again soon
	}
	defer m.agent.looking.RUnlock()
	m.secrecy.locked = now
	busy, err := lockDir(m.Dir(), m.agent.Kind.Release)
	if err != nil {
		m.Log.Warn("remove the key of the encrypted directory", "error", err)
	}
	m.secrecy.done = err == nil && !busy
}

// lockDir takes the key of a member's directory from the kernel, if it has one. What it
// has elsewhere can be found until then only. busy: somebody has a file open.
func lockDir(dir string, release func(string) error) (busy bool, err error) {
	id, encrypted, err := fscrypt.Of(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && !encrypted {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if state, err := fscrypt.KeyState(dir, id); err != nil || state == fscrypt.Absent {
		return false, err
	}
	_ = release(dir) // what it does not know it leaves
	return fscrypt.RemoveKey(filepath.Dir(dir), id)
}

// remove removes what lies in the trash, and takes its key from the kernel where it was a
// member's that is gone. What was only on its way to a member has the key of one that runs.
func (t *trash) remove(ctx context.Context, dir string) error {
	if group, ok, err := btrfs.Of(dir); err == nil && ok {
		return t.removeVolume(ctx, dir, group)
	}
	id, encrypted, err := fscrypt.Of(dir)
	if err != nil || !encrypted {
		return tree.Remove(ctx, dir) // a file, too
	}
	// Who dies after the directory is gone would know of the key no more.
	note := t.agent.Path(trashDir, keyNote+id.String())
	if err := os.Mkdir(note, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := tree.Remove(ctx, dir); err != nil {
		return err
	}
	return t.dropKey(note, id)
}

// keyNote begins the names of what the trash has for keys that are to be removed.
const keyNote = "key-"

// notedKey is the key that a name in the trash stands for.
func notedKey(name string) (id fscrypt.ID, ok bool) {
	text, ok := strings.CutPrefix(name, keyNote)
	if !ok {
		return id, false
	}
	raw, err := hex.DecodeString(text)
	return id, err == nil && copy(id[:], raw) == len(id) && len(raw) == len(id)
}

// dropKey takes a key from the kernel that belongs to no directory any more, and forgets that it
// was to be; one that is busy comes again.
func (t *trash) dropKey(note string, id fscrypt.ID) error {
	for _, all := range []string{t.agent.MemberDir("*"), t.agent.Path(trashDir, "*")} {
		dirs, err := filepath.Glob(all)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			own, of, err := fscrypt.Of(dir)
			if err == nil && of && own == id {
				if filepath.Dir(dir) == t.agent.Path(trashDir) {
					return nil // its turn comes
				}
				return os.Remove(note)
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
				return err
			}
		}
	}
	if busy, err := fscrypt.RemoveKey(t.agent.Path(trashDir), id); err != nil || busy {
		return err
	}
	return os.Remove(note)
}

func isEmpty(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	return len(entries) == 0, err
}
