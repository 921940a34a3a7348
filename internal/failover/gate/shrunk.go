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

// shrunk describes the last time that the old primary removed a synchronous standby and kept
// others. In quorum mode Patroni relies on the remaining ones at once (patroni/quorum.py,
// __remove_gone_nodes). They may not have received yet what only the removed one had confirmed.
type shrunk struct {
	before   patroni.Sync // the state that still names the removed standbys
	left     []string
	revision int64 // of etcd, when the state shrank; 0 if it did not
}

// findShrunk searches etcd's history backwards from the synchronous state that the old primary
// left. A state without standbys ends the search: a standby that is named after it had received
// everything first.
func (g *gate) findShrunk(ctx context.Context, f facts) (shrunk, error) {
	now, revision := f.old, f.oldRevision
	for range mostSteps {
		answer, err := g.Client.Get(ctx, patroni.SyncKey(g.Database), clientv3.WithRev(revision-1))
		if errors.Is(err, rpctypes.ErrCompacted) {
			return shrunk{}, nil // the state is older than the history that etcd keeps
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
// synchronous standbys shrank. It does if it has all that the primary had written a moment
// later, or if enough of the standbys named before are not ahead of it. Otherwise why says
// what is missing; it is empty if nothing is.
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

// wroteAfter returns the WAL position that the old primary's Patroni reported first after a
// revision of etcd; 0 if it reported none. Patroni reports each second in which the position
// changed, and a change of the standbys changes it (patroni/postgresql/sync.py).
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
	// Any holder of the leader key writes this report, even a new one before its gate has run. It
	// counts only if the old primary held the key throughout.
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

// led returns the revision since which the member held the leader key, as of the revision at;
// 0 if it did not hold the key then.
func (g *gate) led(ctx context.Context, name string, at int64) (since int64, err error) {
	answer, err := g.Client.Get(ctx, patroni.LeaderKey(g.Database), clientv3.WithRev(at))
	if err != nil || len(answer.Kvs) == 0 || patroni.MemberName(string(answer.Kvs[0].Value)) != name {
		return 0, err
	}
	return answer.Kvs[0].ModRevision, nil
}
