package agent

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"howdah/internal/host/osuser"
	"howdah/internal/identity/home"
	"howdah/internal/system/owner"
)

// Where the agent is root, each member has an operating-system user of its own: whoever
// gets out of a database into its user finds all others closed. A member's directory belongs
// to its user, and lies where only root may put directories: it says who the user is. A
// member that an older release made keeps the user that all of that release's have.

// users are the operating-system users of a host's members; nil: the agent is not root, and
// everything is of its own user.
type users struct {
	pool *osuser.Pool
	dirs []string // patterns of directories that a user may have here

	mu sync.Mutex // held until the user that was taken has its directory
}

// noRights: it stands for one that cannot be found out.
var noRights = &owner.User{Name: "of nobody", UID: -1, GID: -1}

func (a *Agent) newUsers() *users {
	if os.Geteuid() != 0 {
		return nil
	}
	dirs := []string{a.Path("members", "*"), a.Path(trashDir, "*"), a.Path(jobsDir, "*", "*")}
	for _, dir := range a.Kind.Dirs() {
		dirs = append(dirs, a.Path(dir))
	}
	return &users{
		pool: &osuser.Pool{Dir: osuser.DefaultDir, Owner: a.Dir},
		dirs: dirs,
	}
}

// UserOf is whom a member runs as: the owner of its directory. nil is our own user. It has
// no rights at all where there is no such directory, or where it is not given away yet.
func (a *Agent) UserOf(id string) *owner.User { return a.users.owner(a.MemberDir(id)) }

// OwnerOf is whom a directory belongs to that lies where only root may put directories, as
// UserOf is for that of a member.
func (a *Agent) OwnerOf(dir string) *owner.User { return a.users.owner(dir) }

func (u *users) owner(dir string) *owner.User {
	if u == nil {
		return nil
	}
	uid, gid, err := ownerOf(dir)
	if err != nil || uid <= 0 || gid <= 0 {
		return noRights
	}
	name := osuser.Name(uid)
	if name == "" {
		if known, err := user.LookupId(strconv.Itoa(uid)); err == nil {
			name = known.Username
		}
	}
	return &owner.User{Name: name, UID: uid, GID: gid}
}

func ownerOf(dir string) (uid, gid int, err error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return 0, 0, err
	}
	if !info.IsDir() {
		return 0, 0, fmt.Errorf("%s: %w", dir, syscall.ENOTDIR)
	}
	uid, gid = owners(info)
	return uid, gid, nil
}

func owners(info os.FileInfo) (uid, gid int) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid), int(stat.Gid)
	}
	return -1, -1
}

// Give makes a directory that belongs to a user who has nothing else on this host. One that
// is a user's already stays so. Only root may change the directory that it lies in.
func (a *Agent) Give(dir string) error { return a.users.give(dir) }

func (u *users) give(dir string) error {
	if u == nil {
		return (*owner.User)(nil).GiveDir(dir)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if uid, _, err := ownerOf(dir); err == nil && uid != 0 {
		return nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	taken, err := u.taken()
	if err != nil {
		return err
	}
	uid, err := u.pool.Take(func(uid int) bool { return !taken[uid] })
	if err != nil {
		return err
	}
	return (&owner.User{Name: osuser.Name(uid), UID: uid, GID: uid}).GiveDir(dir)
}

// taken are the users that have a directory here.
func (u *users) taken() (map[int]bool, error) {
	taken := map[int]bool{}
	for _, pattern := range u.dirs {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, dir := range found {
			info, err := os.Lstat(dir)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			uid, _ := owners(info)
			taken[uid] = true
		}
	}
	return taken, nil
}

// keep claims the users that directories of the host belong to: it may have been moved, or
// its disk may come from another machine.
func (u *users) keep() error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	taken, err := u.taken()
	if err != nil {
		return err
	}
	var errs []error
	for uid := range taken {
		errs = append(errs, u.pool.Keep(uid))
	}
	return errors.Join(errs...)
}

// MakeMemberDir makes the directory of a member, with a user, and the one of its socket.
func (a *Agent) MakeMemberDir(id string) error {
	err := a.makeVolume(id)
	if err == nil {
		err = a.users.give(a.MemberDir(id))
	}
	if err != nil {
		return fmt.Errorf("make the directory of %s: %w", id, err)
	}
	if dir := a.SocketDir(id); dir != a.runDir() {
		return a.UserOf(id).GiveDir(dir)
	}
	return nil
}

// runDir is where the sockets are of members that share a user.
func (a *Agent) runDir() string { return filepath.Join(home.RunDir(a.HomeID), a.Name) }

// ownSockets is where each member that has a user of its own has a directory for its socket.
func (a *Agent) ownSockets() string { return a.runDir() + ".members" }

// SocketDir is where a member's PostgreSQL has its socket.
func (a *Agent) SocketDir(id string) string {
	if u := a.UserOf(id); u == nil || osuser.Name(u.UID) == "" {
		return a.runDir()
	}
	return filepath.Join(a.ownSockets(), id)
}

// GiveSocketDir makes a directory for the socket of a server that is no member's, such as one that is
// thrown away, and gives it to the user. The caller removes it. name is no member's id.
func (a *Agent) GiveSocketDir(name string, user *owner.User) (string, error) {
	dir := filepath.Join(a.ownSockets(), name)
	return dir, errors.Join(home.OpenWay(a.ownSockets()), user.GiveDir(dir))
}

// sharers are the members that an older release made, and whom they run as.
func (a *Agent) sharers() (ids []string, shared *owner.User) {
	found, err := filepath.Glob(a.Path("members", "*"))
	if err != nil || a.users == nil {
		return nil, nil
	}
	for _, dir := range found {
		if u := a.users.owner(dir); u.UID > 0 && osuser.Name(u.UID) == "" {
			ids, shared = append(ids, filepath.Base(dir)), u
		}
	}
	return ids, shared
}

// whyShared says why databases are not kept apart from each other here; "": they are.
func (a *Agent) whyShared() string {
	if a.users == nil {
		return fmt.Sprintf("the agent is not root, and all run as user %s", osuser.Current())
	}
	if ids, shared := a.sharers(); shared != nil {
		return fmt.Sprintf("members that an older release made run as user %s (%s)", shared.Name, strings.Join(ids, ", "))
	}
	return ""
}
