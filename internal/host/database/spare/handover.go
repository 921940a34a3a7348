package spare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"howdah/internal/host/agent"
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

// Place is that place: in a subvolume's own directory, as all else that is the member's.
func (s *Keeper) Place(id string) string {
	if s.Agent.IsVolume(id) {
		return filepath.Join(s.Agent.MemberDir(id), handedDir)
	}
	return s.Agent.Path(handedDir, id)
}

// Script stands for initdb in a member's Patroni configuration: it takes a prepared data directory
// for a new database, and waits while none is ready.
func (s *Keeper) Script(id string) []byte { return script(s.Place(id)) }

func script(place string) []byte {
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

// Taker is a member that may be handed data.
type Taker struct {
	*agent.Member
	Keeper  *Keeper
	DataDir string

	handing atomic.Bool // a goroutine hands prepared data over
}

// Open makes the place where a member without data finds some.
func (t *Taker) Open() error {
	if tree.Exists(t.DataDir) {
		return nil
	}
	if t.Keeper.Agent.IsVolume(t.ID) {
		return t.User().MakeDir(t.Keeper.Place(t.ID))
	}
	return t.User().GiveDir(t.Keeper.Place(t.ID))
}

// Offer looks, beside the member, whether the member's script asks for data, and closes
// the place when it has them.
func (t *Taker) Offer(ctx context.Context) {
	place := t.Keeper.Place(t.ID)
	if !tree.Exists(place) || !t.handing.CompareAndSwap(false, true) {
		return
	}
	major := t.Want.Major
	go func() {
		defer t.handing.Store(false)
		ctx, cancel := context.WithTimeout(ctx, handFor)
		defer cancel()
		for !tree.Exists(t.DataDir) {
			if _, err := os.Lstat(filepath.Join(place, wantedFile)); err == nil {
				if err := t.Keeper.Hand(t.ID, major); err != nil {
					t.Log.Warn("hand a prepared data directory over", "error", err)
					return // the next look tries again
				}
			}
			if !pace.Sleep(ctx, handEvery) {
				return
			}
		}
		if err := t.Keeper.Close(t.ID); err != nil {
			t.Log.Warn("close the place of a prepared data directory", "error", err)
		}
	}()
}

// Close closes the place of a member, and forgets what was on its way there. It does not wait until
// all is removed: the user may have put anything there.
func (s *Keeper) Close(id string) error {
	handed := s.Agent.ThrowAway(s.Agent.Path(handedDir, id))
	if place := s.Place(id); s.Agent.IsVolume(id) && tree.Exists(place) {
		handed = s.Agent.ThrowOut(id, place)
	}
	return errors.Join(handed, s.Agent.ThrowAway(s.stagePath(id)), s.Agent.ThrowAway(s.stagePath(id)+partSuffix), s.Agent.ThrowAway(s.takenPath(id)))
}

// stagePath is where nobody but the agent gets to, while the data change hands.
func (s *Keeper) stagePath(id string) string { return s.Agent.OwnPath(id + "." + newData) }

// Hand gives a member a prepared data directory, if one is ready and it has none yet. A crash in
// between leaves it in the stage, from where it is taken again.
func (s *Keeper) Hand(id string, major int) error {
	to := filepath.Join(s.Place(id), newData)
	if tree.Exists(to) {
		return nil
	}
	stage := s.stagePath(id)
	if !tree.Exists(stage) {
		if err := s.stage(id, major, stage); err != nil || !tree.Exists(stage) {
			return err
		}
	}
	user := s.Agent.UserOf(id)
	if err := tree.Give(stage, user); err != nil {
		return err
	}
	if s.Agent.IsVolume(id) {
		if err := copyHanded(stage, to, user); err != nil {
			return err
		}
		return os.RemoveAll(stage)
	}
	return os.Rename(stage, to)
}

// stage takes prepared data: by a copy for a member whose directory is encrypted, as data are
// renamed between directories of one key only.
func (s *Keeper) stage(id string, major int, stage string) error {
	key, encrypted, err := fscrypt.Of(s.Agent.MemberDir(id))
	if err != nil {
		return err
	}
	if !encrypted {
		return s.takeOne(major, stage)
	}
	taken := s.takenPath(id)
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
func (s *Keeper) takenPath(id string) string { return s.Agent.OwnPath(id + ".taken") }

// takeOne moves a prepared data directory; nothing happens where none is ready. A rename
// gives it to one taker alone.
func (s *Keeper) takeOne(major int, to string) error {
	ready, err := filepath.Glob(filepath.Join(s.Dir(major), "ready-*"))
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
