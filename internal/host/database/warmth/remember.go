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
// has from then on.
func (k *Keeper) remembers(ctx context.Context, target member.Assignment) {
	if !k.setUp {
		return
	}
	if !k.read {
		if err := k.recall(ctx, target); err != nil && ctx.Err() == nil {
			k.agent.Log.Info("read again what was cached before a restart", "member", k.id, "error", err)
		}
		k.read, k.written = true, time.Now().Add(rememberEvery)
		return
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

// recall reads what is on the list, at the rate of reading from outside, and gives way to what sessions
// have read since.
func (k *Keeper) recall(ctx context.Context, target member.Assignment) error {
	defer k.drop()
	if err := k.connect(ctx, target); err != nil {
		return err
	}
	buffers, cold, err := postgres.Room(ctx, k.conn)
	if err != nil {
		return err
	}
	if buffers > outsideMost {
		return errTooMany
	}
	listed, err := postgres.Remembered(k.dataDir())
	if err != nil || len(listed) == 0 {
		return err
	}
	have, err := postgres.Cached(ctx, k.conn, 0)
	if err != nil {
		return err
	}
	missing := lacks(listed, have)
	r := round{keeper: k, target: target, missing: count(missing), room: cold * 9 / 10, leads: true, looked: time.Now(), flow: k.flow()}
	return r.read(ctx, missing)
}

var errTooMany = fmt.Errorf("it has more than %d buffers, whose list would take too much memory", outsideMost)

// forgetList removes, once, what a standby wrote down while it was a primary. A primary that is started
// again is a standby for a moment, which follows nobody, and needs its list.
func (k *Keeper) forgetList(follows bool) {
	if k.forgot || !follows {
		return
	}
	err := postgres.Forget(k.dataDir())
	if k.forgot = err == nil; err != nil {
		k.agent.Log.Warn("a standby's list of what was cached", "member", k.id, "error", err)
	}
}
