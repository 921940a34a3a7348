package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
)

// shrunk is the last time that the old primary took somebody out of its synchronous
// standbys and kept others. In quorum mode Patroni counts on those at once
// (patroni/quorum.py, __remove_gone_nodes): what only the one that left had confirmed, they
// may not have received yet.
type shrunk struct {
	before   patroni.Sync // with who left
	left     []string
	revision int64 // since when it is so; 0: it did not shrink
}

// findShrunk looks through etcd's history of the state that the old primary left. A state
// without standbys ends the search: whoever is named after it had everything first.
func (g *gate) findShrunk(ctx context.Context, f facts) (shrunk, error) {
	now, revision := f.old, f.oldRevision
	for range mostSteps {
		answer, err := g.Client.Get(ctx, patroni.SyncKey(g.Database), clientv3.WithRev(revision-1))
		if errors.Is(err, rpctypes.ErrCompacted) {
			return shrunk{}, nil // it was so for long
		}
		if err != nil {
			return shrunk{}, fmt.Errorf("ask etcd for the synchronous state before: %w", err)
		}
		if len(answer.Kvs) == 0 {
			return shrunk{}, nil
		}
		before, err := patroni.ParseSync(answer.Kvs[0].Value)
		if err != nil {
			return shrunk{}, fmt.Errorf("synchronous state of %s: %w", g.Database, err)
		}
		if before.Leader != f.old.Leader || len(before.Standbys) == 0 {
			return shrunk{}, nil
		}
		left := slices.DeleteFunc(slices.Clone(before.Standbys), func(m string) bool { return slices.Contains(now.Standbys, m) })
		if len(left) > 0 {
			return shrunk{before: before, left: left, revision: revision}, nil
		}
		now, revision = before, answer.Kvs[0].ModRevision
	}
	return shrunk{}, nil
}

// whole reports whether the member has what the old primary acknowledged before its
// synchronous standbys shrank: if it has all that the primary had written a moment later,
// or nobody of those who could confirm it then has more. Otherwise it says why not.
func (g *gate) whole(ctx context.Context, f facts) (why string, err error) {
	s, err := g.findShrunk(ctx, f)
	if err != nil || s.revision == 0 {
		return "", err
	}
	wrote, err := g.wroteAfter(ctx, f.old.Leader, s.revision)
	if err != nil {
		return "", fmt.Errorf("ask etcd how far %s was: %w", f.old.Leader, err)
	}
	if own, err := g.Ask(ctx, g.Own); err == nil && wrote > 0 && own.LSN >= wrote {
		return "", nil
	}
	others := slices.DeleteFunc(slices.Clone(s.before.Standbys), func(m string) bool { return m == g.Name })
	level, texts := g.compare(ctx, f, others)
	if fence.Enough(s.before, g.Name, level) {
		return "", nil
	}
	return fmt.Sprintf("%s confirmed commits until a moment ago, and it may not have them: %s",
		strings.Join(s.left, ", "), strings.Join(texts, ", ")), nil
}

// wroteAfter is how far the old primary had written when its Patroni said so for the first
// time after a revision; 0 if it did not. It says so each second in which that changed, and
// a change of the standbys changes it (patroni/postgresql/sync.py).
func (g *gate) wroteAfter(ctx context.Context, old string, revision int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	key := patroni.StatusKey(g.Database)
	now, err := g.Client.Get(ctx, key)
	if err != nil || len(now.Kvs) == 0 || now.Kvs[0].ModRevision <= revision {
		return 0, err
	}
	said := <-g.Client.Watch(clientv3.WithRequireLeader(ctx), key, clientv3.WithRev(revision+1))
	if err := said.Err(); err != nil {
		return 0, err
	}
	if len(said.Events) == 0 {
		return 0, ctx.Err()
	}
	first := said.Events[0].Kv
	// Whoever has the leader key says this, be it only for a moment before its own gate.
	led, err := g.led(ctx, old, revision)
	if err != nil || led == 0 {
		return 0, err
	}
	if leads, err := g.led(ctx, old, first.ModRevision); err != nil || leads != led {
		return 0, err
	}
	var status struct {
		Wrote int64 `json:"optime"`
	}
	err = json.Unmarshal(first.Value, &status)
	return status.Wrote, err
}

// led is since which revision a member had the leader key at another one; 0 if it did not.
func (g *gate) led(ctx context.Context, name string, at int64) (since int64, err error) {
	answer, err := g.Client.Get(ctx, patroni.LeaderKey(g.Database), clientv3.WithRev(at))
	if err != nil || len(answer.Kvs) == 0 || patroni.MemberName(string(answer.Kvs[0].Value)) != name {
		return 0, err
	}
	return answer.Kvs[0].ModRevision, nil
}
