package etcdgate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	errLease = errors.New("the lease is not there, or another database's")
	// errUnknown: a member that took it for the end of its lease would give that up.
	errUnknown = errors.New("etcd does not say whose the lease is")
)

// mostTTL bounds for how many seconds etcd keeps a lease that nobody keeps alive. Patroni
// asks for less.
const mostTTL = 600

// bounded is the request with a time to live that is no longer than may be.
func (q grantRequest) bounded() (grantRequest, error) {
	n, err := strconv.ParseInt(string(q.TTL), 10, 64)
	if err != nil {
		return q, fmt.Errorf("%w: time to live %s", errForm, q.TTL)
	}
	return grantRequest{number(strconv.FormatInt(min(n, mostTTL), 10))}, nil
}

// grants are the leases that were granted here, by whose they are. It is only memory: of
// what it does not know, the keys are asked for.
type grants struct {
	mu  sync.Mutex
	own map[clientv3.LeaseID]string // guarded by mu
}

// mostGrants bounds it: a member needs one lease at a time.
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

// leaseTimeout is shorter than Patroni waits: it asks another gate then.
const leaseTimeout = time.Second

// mayUse: a lease is the caller's own. One that was granted elsewhere is, if it has keys, and
// all of them could be the caller's; without any nobody can say.
func (g *Gate) mayUse(ctx context.Context, id number, own caller) error {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: lease %s", errForm, id)
	}
	if of, known := g.granted.of(clientv3.LeaseID(n)); known {
		if of != own.account() {
			return errLease
		}
		return nil
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
	if len(answer.Keys) == 0 {
		// Patroni asks for another one. An agent and an edge put theirs under keys at once, but
		// may ask another control plane for that than for the lease.
		if g.emptyLeases {
			return nil
		}
		return errLease
	}
	for _, key := range answer.Keys {
		if err := own.may(ctx, need{keys: keys{Key: key}, deed: keeps}); errors.Is(err, errUnknown) {
			return err
		} else if err != nil {
			return errLease
		}
	}
	g.granted.add(clientv3.LeaseID(n), own.account())
	return nil
}
