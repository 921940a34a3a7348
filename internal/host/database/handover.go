package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/host/tree"
	"howdah/internal/system/fscrypt"
)

// A new database begins with a prepared data directory. That belongs to the user who
// prepared it, and has to become the member's: its initdb script asks, and the agent
// hands one over, in a directory of the member's user where it can take it from.

const (
	handedDir = "handed"
	// wantedFile is made by the script, and newData by the agent, below the member's directory there.
	wantedFile = "wanted"
	newData    = "data"

	handEvery = 50 * time.Millisecond
	// handFor is for how long one goroutine looks whether the script asks.
	handFor = 10 * time.Second
)

// handedPath is that place: in a subvolume's own directory, as all else that is the member's.
func (a *Host) handedPath(id string) string {
	if a.IsVolume(id) {
		return filepath.Join(a.MemberDir(id), handedDir)
	}
	return a.Path(handedDir, id)
}

// initdbText takes a prepared data directory for a new database; it waits while none is ready.
func initdbText(place string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
# Called by Patroni in place of initdb: asks the agent for a prepared data directory, and
# moves it to the place that the last argument names.
for data; do :; done
place='%s'
: > "$place/%s" || exit 1
tries=0
while [ $tries -lt 1200 ]; do
	[ -d "$place/%s" ] && mv -T "$place/%[3]s" "$data" && exit 0
	tries=$((tries + 1))
	sleep 0.05
done
echo "no prepared data directory came up within a minute" >&2
exit 1
`, place, wantedFile, newData)
}

// openHandover makes the place where a member without data finds some.
func (r *runner) openHandover() error {
	if tree.Exists(r.dataDir()) {
		return nil
	}
	if r.host.IsVolume(r.ID) {
		return r.User().MakeDir(r.host.handedPath(r.ID))
	}
	return r.User().GiveDir(r.host.handedPath(r.ID))
}

// offerData looks, beside the runner, whether the member's script asks for data, and closes
// the place when it has them.
func (r *runner) offerData(ctx context.Context) {
	place := r.host.handedPath(r.ID)
	if !tree.Exists(place) || !r.handing.CompareAndSwap(false, true) {
		return
	}
	major := r.Want.Major
	go func() {
		defer r.handing.Store(false)
		ctx, cancel := context.WithTimeout(ctx, handFor)
		defer cancel()
		for !tree.Exists(r.dataDir()) {
			if _, err := os.Lstat(filepath.Join(place, wantedFile)); err == nil {
				if err := r.host.spares.hand(r.ID, major); err != nil {
					r.Log.Warn("hand a prepared data directory over", "error", err)
					return // the next look tries again
				}
			}
			if !pace.Sleep(ctx, handEvery) {
				return
			}
		}
		if err := r.host.closeHandover(r.ID); err != nil {
			r.Log.Warn("close the place of a prepared data directory", "error", err)
		}
	}()
}

// closeHandover does not wait until all is removed: the user may have put anything there.
func (a *Host) closeHandover(id string) error {
	handed := a.ThrowAway(a.Path(handedDir, id))
	if place := a.handedPath(id); a.IsVolume(id) && tree.Exists(place) {
		handed = a.ThrowOut(id, place)
	}
	return errors.Join(handed, a.ThrowAway(a.stagePath(id)), a.ThrowAway(a.stagePath(id)+partSuffix), a.ThrowAway(a.takenPath(id)))
}

// stagePath is where nobody but the agent gets to, while the data change hands.
func (a *Host) stagePath(id string) string { return a.OwnPath(id + "." + newData) }

// hand gives a member a prepared data directory, if one is ready and it has none yet. A crash in between
// leaves it in the stage, from where it is taken again.
func (s *spares) hand(id string, major int) error {
	to := filepath.Join(s.host.handedPath(id), newData)
	if tree.Exists(to) {
		return nil
	}
	stage := s.host.stagePath(id)
	if !tree.Exists(stage) {
		if err := s.stage(id, major, stage); err != nil || !tree.Exists(stage) {
			return err
		}
	}
	user := s.host.UserOf(id)
	if err := tree.Give(stage, user); err != nil {
		return err
	}
	if s.host.IsVolume(id) {
		if err := copyHanded(stage, to, user); err != nil {
			return err
		}
		return os.RemoveAll(stage)
	}
	return os.Rename(stage, to)
}

// stage takes prepared data: by a copy for a member whose directory is encrypted, as data are
// renamed between directories of one key only.
func (s *spares) stage(id string, major int, stage string) error {
	key, encrypted, err := fscrypt.Of(s.host.MemberDir(id))
	if err != nil {
		return err
	}
	if !encrypted {
		return s.takeOne(major, stage)
	}
	taken := s.host.takenPath(id)
	if !tree.Exists(taken) {
		if err := s.takeOne(major, taken); err != nil || !tree.Exists(taken) {
			return err
		}
	}
	if err := copyEncrypted(taken, stage, key); err != nil {
		return err
	}
	return os.RemoveAll(taken)
}

// takenPath is where data lie that are to be copied to the stage.
func (a *Host) takenPath(id string) string { return a.OwnPath(id + ".taken") }

// takeOne moves a prepared data directory; nothing happens where none is ready. A rename
// gives it to one taker alone.
func (s *spares) takeOne(major int, to string) error {
	ready, err := filepath.Glob(filepath.Join(s.dir(major), "ready-*"))
	if err != nil {
		return err
	}
	for _, dir := range ready {
		if err := os.Rename(dir, to); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
