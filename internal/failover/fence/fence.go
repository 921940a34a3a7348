// Package fence makes sure that a primary can acknowledge nothing any more. Only then does it take
// the leader key away. Patroni promotes; fence never does. The order is always: fence, prove,
// revoke (docs/design/availability.md).
//
// There are several ways to fence. All have one interface, Fencer, which returns a proof or
// refuses.
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
	// ErrRefused says that a fencer could not prove what it was asked to prove. Another fencer may
	// be able to.
	ErrRefused = errors.New("not fenced")
	// ErrMoved says that leadership or the synchronous set changed since it was read. The caller
	// must read again.
	ErrMoved = errors.New("leadership moved meanwhile")
	// ErrNotSafe says that no standby could take over without losing acknowledged writes.
	ErrNotSafe = errors.New("no standby has every acknowledged write")
)

// Leadership is what etcd held about a database's primary at one moment. A proof counts only for
// exactly this state.
type Leadership struct {
	Database       string           `json:"database"`
	Leader         string           `json:"leader"` // member name
	LeaderRevision int64            `json:"leader_revision"`
	Lease          clientv3.LeaseID `json:"lease"`
	Sync           patroni.Sync     `json:"sync"`
	SyncRevision   int64            `json:"sync_revision"`
}

// Read reads the leadership of a database in one transaction. Leader is "" if the database has no
// leader.
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

// Proof says why it is certain that the leader acknowledges nothing any more.
type Proof struct {
	Method string    `json:"method"` // killed, quorum, stonith, operator; gate if a lease ended by itself
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
}

// Fencer is one way to fence. It refuses with an error that wraps ErrRefused.
type Fencer interface {
	// Name returns the method that the fencer's proofs name.
	Name() string
	// Fence makes sure that l's leader, on host, can acknowledge no further commit, and returns the
	// proof. It may be called again for the same leader.
	Fence(ctx context.Context, l Leadership, host string) (Proof, error)
}

// Revoke deletes the leader key of a fenced primary, so that Patroni's standbys race for it at
// once. It is one transaction. If leadership is still what the proof is about, and the conditions
// in also hold, it deletes the key and makes the changes in also. It also writes the sync key again
// unchanged: after that no compare-and-swap of the old leader can shrink the synchronous set of the
// new one.
//
// It returns ErrMoved if leadership changed or a condition does not hold, ErrNotSafe if no standby
// could take over, and ErrRefused without a proof. After any other error the key may or may not be
// gone. Revoke also ends the old primary's lease. If that fails, the lease ends by itself, so it is
// no error.
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

// dropLease ends the old primary's lease. That also removes its member key, so that the standbys do
// not ask it for its state. An error does not matter, as the lease ends by itself.
func dropLease(ctx context.Context, client *clientv3.Client, l Leadership) {
	if l.Lease != 0 {
		_, _ = client.Revoke(ctx, l.Lease)
	}
}
