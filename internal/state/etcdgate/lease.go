package etcdgate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	errLease = errors.New("the lease is not there, or another database's")
	// errUnknown is not an answer that the lease has ended: a member would then give the lease up.
	errUnknown = errors.New("etcd does not say whose the lease is")
)

// mostTTL bounds how many seconds etcd keeps a lease that nobody keeps alive. Patroni asks for
// less.
const mostTTL = 600

// bounded returns the request with a time to live that is not longer than allowed, and with a
// number that says whose the lease is.
func (q grantRequest) bounded(account string) (grantRequest, error) {
	n, err := strconv.ParseInt(string(q.TTL), 10, 64)
	if err != nil || q.ID != "" {
		return q, fmt.Errorf("%w: time to live %s of lease %s", errForm, q.TTL, q.ID)
	}
	return grantRequest{TTL: number(strconv.FormatInt(min(n, mostTTL), 10)), ID: number(strconv.FormatInt(leaseFor(account), 10))}, nil
}

// leaseFor makes up the number of a lease. It begins with a mark of the account. Only doors and
// gates grant leases to callers other than control planes, and callers choose no numbers. So all
// doors and gates know whose a lease is, whichever of them granted it, and before there are keys
// under it.
func leaseFor(account string) int64 { return int64(leaseMark(account))<<32 | int64(rand.Uint32()) }

// granted reports whether a lease was granted to an account by leaseFor.
func granted(id int64, account string) bool { return id>>32 == int64(leaseMark(account)) }

// leaseMark returns 31 bits, because numbers of leases are above 0.
func leaseMark(account string) uint32 {
	sum := sha256.Sum256([]byte(account))
	return binary.BigEndian.Uint32(sum[:]) >> 1
}

// grants has the leases whose keys were found to belong to an account. Nothing else says whose a
// lease is that an older release granted.
type grants struct {
	mu  sync.Mutex
	own map[clientv3.LeaseID]string // guarded by mu
}

// mostGrants bounds the leases that are remembered. A member needs one lease at a time.
const mostGrants = 100_000

func (g *grants) add(id clientv3.LeaseID, of string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.own == nil || len(g.own) >= mostGrants {
		g.own = map[clientv3.LeaseID]string{}
	}
	g.own[id] = of
}

func (g *grants) of(id clientv3.LeaseID) (string, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of, known := g.own[id]
	return of, known
}

// leaseTimeout is shorter than Patroni waits. Patroni then asks another gate.
const leaseTimeout = time.Second

// mayUse returns nil if a lease is the caller's own: by its number, or because it has keys and all
// of them could be the caller's. A lease is a host's own only as long as the host may write the
// keys under it: a member may have been taken from the host meanwhile.
func (g *Gate) mayUse(ctx context.Context, id number, own caller) error {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: lease %s", errForm, id)
	}
	ours := granted(n, own.account())
	if !g.forHosts {
		if of, known := g.granted.of(clientv3.LeaseID(n)); ours || known && of == own.account() {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	answer, err := g.Client.TimeToLive(ctx, clientv3.LeaseID(n), clientv3.WithAttachedKeys())
	if err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	if answer.TTL <= 0 {
		return errLease
	}
	if len(answer.Keys) == 0 && !ours {
		return errLease // nobody can say whose it is: whoever needs one asks for another
	}
	for _, key := range answer.Keys {
		if err := own.may(ctx, need{keys: keys{Key: key}, deed: keeps}); errors.Is(err, errUnknown) {
			return err
		} else if err != nil {
			return errLease
		}
	}
	if !g.forHosts {
		g.granted.add(clientv3.LeaseID(n), own.account())
	}
	return nil
}
