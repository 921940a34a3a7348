package warmth

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/member"
)

// rememberEvery is how often a primary writes down what it has cached.
const rememberEvery = 5 * time.Minute

func (k *Keeper) dataDir() string { return filepath.Join(k.agent.MemberDir(k.id), "data") }

// remembers has a primary that was started again read what it had cached before, and write down what it
// has from then on. The list itself says whether it was read since the server was started: then there is
// a newer one. So neither another agent reads it again, nor is a start overlooked.
func (k *Keeper) remembers(ctx context.Context, target member.Assignment, started time.Time) {
	if !k.setUp {
		return
	}
	if !k.seen.Equal(started) {
		if !k.turn.TryLock() {
			return // another member of this host reads: they share its disk
		}
		defer k.turn.Unlock()
		was, err := k.recall(ctx, target, started)
		if err != nil && ctx.Err() == nil {
			k.agent.Log.Info("read again what was cached before a restart", "member", k.id, "error", err)
		}
		if ctx.Err() != nil {
			return
		}
		// A new primary has better things to do than to write a list, unless an old one is there.
		if k.seen, k.written = started, time.Now().Add(rememberEvery); was {
			k.written = time.Time{}
		}
	}
	if time.Now().Before(k.written) {
		return
	}
	k.written = time.Now().Add(rememberEvery)
	conn, err := k.admin(ctx, target, "rdsadmin")
	if err == nil {
		defer conn.Close(context.WithoutCancel(ctx))
		err = postgres.Remember(ctx, conn)
	}
	if err != nil && ctx.Err() == nil {
		k.agent.Log.Warn("write down what is cached", "member", k.id, "error", err)
	}
}

// recall reads what is on a list that is older than the server's start, at the rate of reading from
// outside, and gives way to what sessions have read since. was says that there is such a list.
func (k *Keeper) recall(ctx context.Context, target member.Assignment, started time.Time) (was bool, err error) {
	at, err := postgres.RememberedAt(k.dataDir())
	if err != nil || at.IsZero() || at.After(started) {
		return false, err
	}
	defer k.drop()
	missing, room, err := k.forgotten(ctx, target)
	if err != nil || len(missing) == 0 {
		return true, err
	}
	r := round{keeper: k, open: k.opener(target), missing: count(missing), room: room, leads: true, looked: time.Now(), flow: k.flow()}
	return true, r.read(ctx, missing)
}

// forgotten is what is on the list and is not cached, and for how many blocks there is room.
func (k *Keeper) forgotten(ctx context.Context, target member.Assignment) (map[postgres.File]postgres.Blocks, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := k.connect(ctx, target); err != nil {
		return nil, 0, err
	}
	buffers, cold, err := postgres.Room(ctx, k.conn)
	if err != nil {
		return nil, 0, err
	}
	if buffers > outsideMost {
		return nil, 0, errTooMany
	}
	listed, err := postgres.Remembered(k.dataDir())
	if err != nil || len(listed) == 0 {
		return nil, 0, err
	}
	have, err := postgres.Cached(ctx, k.conn, 0)
	if err != nil {
		return nil, 0, err
	}
	return lacks(listed, have), cold * 9 / 10, nil
}

var errTooMany = fmt.Errorf("it has more than %d buffers, whose list would take too much memory", outsideMost)

// forgetList removes, once, what a standby wrote down while it was a primary. A primary that is started
// again is a standby for a moment, which follows nobody, and needs its list.
func (k *Keeper) forgetList(follows bool) {
	if k.forgot || !follows {
		return
	}
	err := postgres.Forget(k.dataDir())
	if k.forgot = err == nil; k.forgot {
		k.unforgotten = ""
		return
	}
	if why := err.Error(); why != k.unforgotten {
		k.unforgotten = why
		k.agent.Log.Warn("a standby's list of what was cached", "member", k.id, "error", err)
	}
}
