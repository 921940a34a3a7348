// Package fence makes sure that a primary can acknowledge nothing any more, and
// only then takes its leader key away. Patroni promotes; fence never does. The
// order is always: fence, prove, revoke (docs/design/availability.md).
//
// There are several ways to fence, behind one interface: evidence goes in, a
// proof or a refusal comes out.
package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

var (
	// ErrRefused says that a fencer could not prove what it was asked to: another
	// one may.
	ErrRefused = errors.New("not fenced")
	// ErrMoved says that leadership or the synchronous set changed since it was
	// read: look again.
	ErrMoved = errors.New("leadership moved meanwhile")
	// ErrNotSafe says that nobody could take over without losing acknowledged writes.
	ErrNotSafe = errors.New("no standby has every acknowledged write")
)

// Leadership is what etcd said of a database's primary at one moment. A proof
// counts for exactly this state.
type Leadership struct {
	Database       string           `json:"database"`
	Leader         string           `json:"leader"` // member name
	LeaderRevision int64            `json:"leader_revision"`
	Lease          clientv3.LeaseID `json:"lease"`
	Sync           patroni.Sync     `json:"sync"`
	SyncRevision   int64            `json:"sync_revision"`
}

// Read reads the leadership of a database in one transaction. A database without
// a leader has an empty one.
func Read(ctx context.Context, client *clientv3.Client, database string) (Leadership, error) {
	ctx, cancel := state.Within(ctx)
	defer cancel()
	answer, err := client.Txn(ctx).Then(
		clientv3.OpGet(patroni.LeaderKey(database)), clientv3.OpGet(patroni.SyncKey(database))).Commit()
	if err != nil {
		return Leadership{}, fmt.Errorf("read leadership of %s: %w", database, err)
	}
	l := Leadership{Database: database}
	if kvs := answer.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		l.Leader, l.LeaderRevision, l.Lease = patroni.MemberName(string(kvs[0].Value)), kvs[0].ModRevision, clientv3.LeaseID(kvs[0].Lease)
	}
	if kvs := answer.Responses[1].GetResponseRange().Kvs; len(kvs) > 0 {
		l.SyncRevision = kvs[0].ModRevision
		if l.Sync, err = patroni.ParseSync(kvs[0].Value); err != nil {
			return Leadership{}, fmt.Errorf("read leadership of %s: %w", database, err)
		}
	}
	return l, nil
}

// Replaceable reports whether a standby is known to have everything that the
// leader acknowledged, so that taking the key away loses nothing.
func (l Leadership) Replaceable() bool {
	return l.Leader != "" && l.Sync.Leader == l.Leader && len(l.Sync.Standbys) > 0
}

// Proof says how it is known that the leader acknowledges nothing any more.
type Proof struct {
	Method string    `json:"method"` // killed, quorum, stonith, operator; gate if a lease ended by itself
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
}

// Fencer proves, or refuses with an error that wraps ErrRefused.
type Fencer interface {
	// Name is the proof's method.
	Name() string
	// Fence makes it true that l's leader, on host, can acknowledge no further
	// commit, and proves it. It may be called again for the same leader.
	Fence(ctx context.Context, l Leadership, host string) (Proof, error)
}

// Revoke takes the leader key of a fenced primary away, so that Patroni's
// standbys race for it at once. It is one transaction: if leadership is still
// what the proof is about, and the conditions among also hold, the key goes, the
// changes among also are made, and the sync key is written again unchanged, so
// that no compare-and-swap of the old leader can shrink the synchronous set
// behind the back of the new one. It answers ErrMoved if anything changed, and
// ErrNotSafe if nobody could take over; after any other error it may have
// happened all the same. The old primary's lease is ended too; where that fails it
// ends by itself, which is no error.
func Revoke(ctx context.Context, client *clientv3.Client, l Leadership, proof Proof, also ...state.Op) error {
	if proof.Method == "" {
		return fmt.Errorf("revoke %s of %s without a proof: %w", l.Leader, l.Database, ErrRefused)
	}
	if !l.Replaceable() {
		return fmt.Errorf("revoke %s of %s: %w", l.Leader, l.Database, ErrNotSafe)
	}
	ctx, cancel := state.Within(ctx)
	defer cancel()
	leaderKey, syncKey := patroni.LeaderKey(l.Database), patroni.SyncKey(l.Database)
	sync, err := client.Get(ctx, syncKey)
	if err != nil {
		return fmt.Errorf("revoke %s of %s: %w", l.Leader, l.Database, err)
	}
	if len(sync.Kvs) == 0 || sync.Kvs[0].ModRevision != l.SyncRevision {
		return fmt.Errorf("revoke %s of %s: %w", l.Leader, l.Database, ErrMoved)
	}
	conditions, changes, err := state.Split(also)
	if err != nil {
		return fmt.Errorf("revoke %s of %s: %w", l.Leader, l.Database, err)
	}
	answer, err := client.Txn(ctx).
		If(append(conditions, clientv3.Compare(clientv3.ModRevision(leaderKey), "=", l.LeaderRevision),
			clientv3.Compare(clientv3.ModRevision(syncKey), "=", l.SyncRevision))...).
		Then(append(changes, clientv3.OpDelete(leaderKey), clientv3.OpPut(syncKey, string(sync.Kvs[0].Value)))...).
		Commit()
	if err != nil {
		return fmt.Errorf("revoke %s of %s: %w", l.Leader, l.Database, err)
	}
	if !answer.Succeeded {
		return fmt.Errorf("revoke %s of %s: %w", l.Leader, l.Database, ErrMoved)
	}
	dropLease(ctx, client, l)
	return nil
}

// dropLease also removes the old primary's member key, which hangs on the same
// lease: the standbys then do not ask it for its opinion. An error is none: left
// alone the lease ends by itself.
func dropLease(ctx context.Context, client *clientv3.Client, l Leadership) {
	if l.Lease != 0 {
		_, _ = client.Revoke(ctx, l.Lease)
	}
}
