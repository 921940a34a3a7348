// Package osuser hands out operating-system users of this machine, so that each member of a
// database runs as a user of its own. What one of them owns is closed to all others.
//
// The users are named howdah-<uid>. They are made when they are needed, and used again: useradd is
// slow, and somebody else could get the number of a user that is deleted. A claim says which host
// has a user. The directory of a member belongs to the member's user, and so says which member runs
// as that user.
package osuser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc/table"
	"howdah/internal/system/plainfile"
)

const (
	// firstUID to lastUID are for users that a system makes as it needs them (Debian policy 9.2.2).
	// They are far from where useradd begins.
	firstUID, lastUID = 52000, 58999

	prefix = "howdah-"

	// DefaultDir has the machine's claims, and outlasts a reboot. It is in no home, because a home
	// may be deleted, and a machine may have several.
	DefaultDir = "/var/lib/howdah-users"
)

var (
	// ErrNone says that all users of the range are taken.
	ErrNone = errors.New("no operating-system user is left for another database")
	// ErrTaken says that a user belongs to another claimant.
	ErrTaken = errors.New("the user is another host's")
)

// Pool hands out users to one claimant. Only root can use it. Several processes may use it at once,
// also for several claimants.
type Pool struct {
	Dir   string // of the claims
	Owner string // a directory: the claims last as long as it
}

// Take returns a user of the claimant for which free returns true. It makes one if there is none.
// No process of the machine runs as that user. The caller must make free return false for it before
// the next call.
func (p *Pool) Take(free func(uid int) bool) (uid int, err error) {
	err = p.locked(func() error {
		uid, err = p.take(free)
		return err
	})
	return uid, err
}

func (p *Pool) take(free func(int) bool) (int, error) {
	busy, err := running()
	if err != nil {
		return 0, err
	}
	for n := firstUID; n <= lastUID; n++ {
		switch owner, err := p.claimed(n); {
		case err != nil:
			return 0, err
		case owner != "" && owner != p.Owner, busy[n], owner == p.Owner && !free(n):
			continue
		}
		switch err := ensure(n); {
		case errors.Is(err, ErrTaken):
			continue
		case err != nil:
			return 0, err
		}
		return n, p.claim(n)
	}
	return 0, ErrNone
}

// Keep claims a user to whom something of the claimant already belongs, as after the directory was
// moved. It makes the user if this machine does not know it. It does nothing for a user that is not
// of the pool. ErrTaken says that somebody else has claimed the user.
func (p *Pool) Keep(uid int) error {
	if uid < firstUID || uid > lastUID {
		return nil
	}
	return p.locked(func() error {
		owner, err := p.claimed(uid)
		if err != nil || owner == p.Owner {
			return err
		}
		if owner != "" {
			return fmt.Errorf("user %s belongs to %s: %w", Name(uid), owner, ErrTaken)
		}
		if err := ensure(uid); err != nil {
			return err
		}
		return p.claim(uid)
	})
}

// Name returns the name of a user of the pool, or "" if it is not one.
func Name(uid int) string {
	if uid < firstUID || uid > lastUID {
		return ""
	}
	return prefix + strconv.Itoa(uid)
}

// Current returns the name of this process's user.
func Current() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// locked runs f while nobody else on this machine hands out users.
func (p *Pool) locked(f func() error) error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("claim a user: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(p.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("claim a user: %w", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("claim a user: %w", err)
	}
	return f()
}

func (p *Pool) path(uid int) string { return filepath.Join(p.Dir, Name(uid)) }

// claim records which claimant has a user, and on which file system the claimant's directory lies.
func (p *Pool) claim(uid int) error {
	system, err := fileSystem(p.Owner)
	if err != nil {
		return fmt.Errorf("claim user %s: %w", Name(uid), err)
	}
	return plainfile.Replace(p.path(uid), []byte(p.Owner+"\n"+system+"\n"), 0o600)
}

// claimed returns the claimant of a user. It returns "" if there is none, or if its directory was
// deleted. A directory that is away because its file system is not mounted keeps its users.
func (p *Pool) claimed(uid int) (owner string, err error) {
	text, err := plainfile.Read(p.path(uid))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read who has user %s: %w", Name(uid), err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 2 || !filepath.IsAbs(lines[0]) {
		return "", nil // half written by nobody: it is replaced in one step
	}
	owner = lines[0]
	if _, err := os.Lstat(owner); !errors.Is(err, os.ErrNotExist) {
		return owner, nil
	}
	above := filepath.Dir(owner)
	for {
		if _, err := os.Lstat(above); err == nil || above == "/" {
			break
		}
		above = filepath.Dir(above)
	}
	if system, err := fileSystem(above); err != nil || system != lines[1] {
		return owner, nil //nolint:nilerr // nobody can say that it was deleted
	}
	return "", nil
}

// fileSystem names the file system of a path. The name holds over reboots if the file system has a
// name.
func fileSystem(path string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return "", fmt.Errorf("find file system of %s: %w", path, err)
	}
	return fmt.Sprintf("%x-%08x%08x", stat.Type, uint32(stat.Fsid.Val[0]), uint32(stat.Fsid.Val[1])), nil
}

// running returns the users that processes run as.
func running() (map[int]bool, error) {
	all, err := table.System.All()
	if err != nil {
		return nil, fmt.Errorf("look who runs: %w", err)
	}
	busy := map[int]bool{}
	for _, entry := range all {
		if entry.Dead() {
			continue
		}
		for _, uid := range uids(entry.ID.PID) {
			busy[uid] = true
		}
	}
	return busy, nil
}

// uids returns the users of a process: real, effective, saved, and for files.
func uids(pid int) (all []int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil // it has ended
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			for _, word := range strings.Fields(rest) {
				if uid, err := strconv.Atoi(word); err == nil && !slices.Contains(all, uid) {
					all = append(all, uid)
				}
			}
		}
	}
	return all
}

// ensure makes the user and its group if they are not there. ErrTaken says that the number or the
// name is somebody else's.
func ensure(uid int) error {
	if err := made(uid, groupIs, "groupadd", "--system", "--gid", strconv.Itoa(uid), Name(uid)); err != nil {
		return err
	}
	return made(uid, userIs, "useradd", "--system", "--uid", strconv.Itoa(uid), "--gid", strconv.Itoa(uid), "--no-create-home",
		"--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", "--comment", "database of Howdah", Name(uid))
}

// made runs a program unless there already is what the program makes. If the program fails because
// somebody else was faster, that is no error.
func made(uid int, is func(uid int) (bool, error), program string, args ...string) error {
	there, err := is(uid)
	if err != nil || there {
		return err
	}
	failed := command(program, args...)
	if there, err = is(uid); err == nil && there {
		return nil
	}
	return errors.Join(failed, err)
}

// groupIs asks by number and by name. Somebody else may make the group in between.
func groupIs(uid int) (bool, error) {
	number := strconv.Itoa(uid)
	if g, err := user.LookupGroupId(number); err == nil {
		if g.Name != Name(uid) {
			return false, fmt.Errorf("group %d is %s: %w", uid, g.Name, ErrTaken)
		}
		return true, nil
	}
	if g, err := user.LookupGroup(Name(uid)); err == nil {
		if g.Gid == number {
			return true, nil
		}
		return false, fmt.Errorf("group %s has the number %s: %w", g.Name, g.Gid, ErrTaken)
	}
	return false, nil
}

// userIs asks as groupIs does.
func userIs(uid int) (bool, error) {
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		if u.Username != Name(uid) || u.Gid != number {
			return false, fmt.Errorf("user %d is %s of group %s: %w", uid, u.Username, u.Gid, ErrTaken)
		}
		return true, nil
	}
	if u, err := user.Lookup(Name(uid)); err == nil {
		if u.Uid == number && u.Gid == number {
			return true, nil
		}
		return false, fmt.Errorf("user %s has the number %s: %w", u.Username, u.Uid, ErrTaken)
	}
	return false, nil
}

// commandTimeout is how long another program may hold the list of users.
const commandTimeout = 30 * time.Second

func command(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make an operating-system user for a database: %s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
