package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/tree"
	"howdah/internal/system/btrfs"
)

// What a database takes of the disk is measured, and PostgreSQL told to stop
// (internal/host/database/probe). That does not hold against whoever has got out of the database
// into its operating-system user. Where the agent is root and the host's directory is on Btrfs
// whose quotas are on, the kernel holds a limit above that one: the directory of a member that is
// made there is a subvolume. A member that was made before stays as it is.
//
// The limit counts all of the member's directory, and only that: nothing that is a member's may lie
// anywhere else, and what is renamed out of it goes another way.

const (
	// volumeEvery is how often it is looked what a subvolume has.
	volumeEvery = time.Second
	// nearlyLimit is what is left where a member counts as stopped by the limit: a file of WAL is
	// written no more.
	nearlyLimit = 16 << 20
	// reserveStep is by how much the limit of all members has to be wrong to be set again.
	reserveStep = 64 << 20
	// recountEvery spaces attempts to have the file system count anew.
	recountEvery = 10 * time.Minute
	// thrownPrefix begins names of what is to be removed from a subvolume.
	thrownPrefix = "thrown-"
	// groupNote begins the names of what the trash has for quota groups that are to be removed.
	groupNote = "group-"
)

// together is the group that counts all members of a file system, of whatever host.
var together = btrfs.Above(0x686f77646168) // "howdah"

// reserve is what databases leave of a disk of this many bytes, together, for the agent, etcd and
// logs: well above what makes a disk nearly full.
func reserve(size int64) int64 { return max(512<<20, min(size/20, 8<<30)) }

// limiter is what a host does for all of its members. It is used by describe only.
type limiter struct {
	why       string // storage is watched, and not limited; "": the file system limits it
	recounted time.Time
}

// look finds out whether the file system holds limits, and sees that all members together leave
// the reserve of a disk that has this many bytes, and this many free ones. It answers how many of
// those are the databases'.
func (l *limiter) look(dir string, size, free int64) (left int64, err error) {
	l.why = ""
	if err := btrfs.Try(dir); err != nil {
		l.why = err.Error()
		if errors.Is(err, btrfs.ErrStale) && time.Since(l.recounted) >= recountEvery {
			l.recounted = time.Now()
			return free, btrfs.Recount(dir)
		}
		return free, nil
	}
	if err := btrfs.MakeGroup(dir, together); err != nil {
		return free, err
	}
	used, limit, err := btrfs.Usage(dir, together)
	if err != nil {
		return free, err
	}
	left = max(free-reserve(size), 0)
	if most := max(used+left, 1<<20); limit == btrfs.NoLimit || max(most-limit, limit-most) >= reserveStep {
		err = btrfs.Limit(dir, together, most)
	}
	return left, err
}

// roomOn is what of the free bytes of a disk is the databases'.
func roomOn(dir string, size, free int64) int64 {
	if !limits(dir) {
		return free
	}
	return max(free-reserve(size), 0)
}

// limits: the file system of the host's directory holds limits.
func limits(dir string) bool { return btrfs.Try(dir) == nil }

// IsVolume: the member's directory is a subvolume.
func (a *Agent) IsVolume(id string) bool {
	_, ok, err := btrfs.Of(a.MemberDir(id))
	return ok && err == nil
}

// makeVolume makes the directory of a new member a subvolume, where those are limited. It is root's
// until it is given away, and what a killed agent left of it is gone on with.
func (a *Agent) makeVolume(id string) error {
	if a.users == nil || !limits(a.Dir) {
		return nil
	}
	dir := a.MemberDir(id)
	if !tree.Exists(dir) {
		if err := btrfs.Make(dir); err != nil {
			return err
		}
	}
	group, ok, err := btrfs.Of(dir)
	if err != nil || !ok {
		return err
	}
	if uid, _, err := ownerOf(dir); err != nil || uid != 0 {
		return err
	}
	return errors.Join(os.Chmod(dir, 0o700), btrfs.WriteInPlace(dir), btrfs.MakeGroup(a.Dir, together), btrfs.Join(a.Dir, group, together))
}

// volume is what is known of a member's subvolume. It belongs to the member's goroutine.
type volume struct {
	limit  int64 // that was wanted last; 0: none yet
	looked time.Time
	detail string // it has all it may
}

// limitVolume sets what the member's directory may have as soon as that changes, and looks what it
// has.
func (m *Member) limitVolume() {
	limit := m.workload.Room()
	if limit <= 0 {
		limit = btrfs.NoLimit
	}
	now := time.Now()
	if now.Sub(m.volume.looked) < volumeEvery && limit == m.volume.limit {
		return
	}
	m.volume.looked, m.volume.limit = now, limit
	if err := m.volume.hold(m.agent.Dir, m.Dir(), limit); err != nil {
		m.Log.Warn("limit the member's directory", "error", err)
	}
}

func (v *volume) hold(host, dir string, limit int64) error {
	group, ok, err := btrfs.Of(dir)
	v.detail = ""
	if err != nil || !ok || btrfs.Try(host) != nil {
		return err
	}
	used, has, err := btrfs.Usage(host, group)
	if err != nil {
		return err
	}
	if has != limit {
		if err := btrfs.Limit(host, group, limit); err != nil {
			return err
		}
	}
	if limit > 0 && used >= limit-nearlyLimit {
		v.detail = fmt.Sprintf("its directory has %d MiB, and the file system lets it have %d MiB", used>>20, limit>>20)
	}
	return nil
}

// ThrowOut has what is in the member's own directory removed by whoever empties the trash. It is
// renamed within the subvolume, with the user's rights, and counts until it is gone.
func (a *Agent) ThrowOut(id, path string) error {
	to := filepath.Join(a.MemberDir(id), fmt.Sprintf("%s%d", thrownPrefix, time.Now().UnixNano()))
	rename := func() error { return a.UserOf(id).Do(func() error { return os.Rename(path, to) }) }
	err := rename()
	if errors.Is(err, unix.EDQUOT) {
		err = a.withMore(id, rename)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("throw %s away: %w", path, err)
	}
	return nil
}

// withMore does what needs a little room where the member has all it may.
func (a *Agent) withMore(id string, do func() error) error {
	group, ok, err := btrfs.Of(a.MemberDir(id))
	if err != nil || !ok {
		return err
	}
	_, limit, err := btrfs.Usage(a.Dir, group)
	if err != nil || limit == btrfs.NoLimit {
		return errors.Join(err, unix.EDQUOT)
	}
	return errors.Join(btrfs.Limit(a.Dir, group, limit+nearlyLimit), do(), btrfs.Limit(a.Dir, group, limit))
}

// thrown are the paths of what was thrown away within the subvolume of a member, or of all, "*",
// and has not been removed yet.
func (a *Agent) thrown(id string) ([]string, error) {
	return filepath.Glob(filepath.Join(a.MemberDir(id), thrownPrefix+"*"))
}

// Throws reports whether something is being removed within the subvolume of a member: it counts
// against the member's limit until it is gone.
func (a *Agent) Throws(id string) bool {
	thrown, _ := a.thrown(id)
	return len(thrown) > 0
}

// removeThrownOut removes what was thrown away within subvolumes.
func (t *trash) removeThrownOut(ctx context.Context) error {
	thrown, err := t.agent.thrown("*")
	errs := []error{err}
	for _, path := range thrown {
		errs = append(errs, t.agent.OwnerOf(filepath.Dir(path)).Do(func() error { return tree.RemoveOwn(ctx, path) }))
	}
	return errors.Join(errs...)
}

// removeVolume removes the subvolume of a member that was deleted, and then its quota group.
func (t *trash) removeVolume(ctx context.Context, dir string, group btrfs.ID) error {
	// Who dies after the subvolume is gone would know of the group no more.
	note := t.agent.Path(trashDir, fmt.Sprintf("%s%d", groupNote, group))
	if err := os.Mkdir(note, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := btrfs.Delete(dir); err != nil {
		if !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		// Others lie in it. What is full can be removed only as far as it needs no room for that.
		if err := errors.Join(btrfs.Limit(t.agent.Dir, group, btrfs.NoLimit), tree.Remove(ctx, dir)); err != nil {
			return err
		}
	}
	return t.dropGroup(note, group)
}

// notedGroup is the quota group that a name in the trash stands for.
func notedGroup(name string) (id btrfs.ID, ok bool) {
	n, err := fmt.Sscanf(name, groupNote+"%d", &id)
	return id, n == 1 && err == nil && name == fmt.Sprintf("%s%d", groupNote, id)
}

// dropGroup removes a quota group, once the kernel has given the room of its subvolume back.
func (t *trash) dropGroup(note string, group btrfs.ID) error {
	err := btrfs.DropGroup(t.agent.Dir, group)
	if errors.Is(err, unix.EBUSY) {
		return nil // its turn comes again
	}
	if err != nil && btrfs.Try(t.agent.Dir) == nil {
		return err
	}
	return os.Remove(note) // where quotas are off there are no groups
}
