package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultQuota is how large the database of a member may be, in bytes, before etcd takes no more
// writes of anybody.
const DefaultQuota = 8 << 30

// Reserve returns the size from which on the API adds nothing any more. What is left up to the
// quota is for the leases of Patroni, for fences and for revocations.
func Reserve(quota int64) int64 { return quota / 2 }

// surveyPatience is how long a member may take to say how it is.
const surveyPatience = 2 * time.Second

// errNotStarted says that a member was added and has never run.
var errNotStarted = errors.New("it has not started yet")

// Condition is how a member is at one moment.
type Condition struct {
	ID      uint64
	Name    string
	URL     string // for clients
	Learner bool
	Leader  bool // of raft
	Size    int64
	InUse   int64 // bytes of Size that hold something
	Quota   int64 // 0: an older release, which does not say
	// Full says that the member's alarm stands. Then nobody can write.
	Full bool
	Err  error // it did not answer; all numbers are zero
}

// Scarce reports whether only the reserve is left of the member's quota.
func (c Condition) Scarce() bool { return c.Quota > 0 && c.Size >= Reserve(c.Quota) }

// IsFull reports whether an error in a member's status is the alarm that stops all writes.
func IsFull(text string) bool {
	return strings.Contains(text, etcdserverpb.AlarmType_NOSPACE.String())
}

// Survey asks all members at once how they are. A member that does not answer is in the result with
// an error.
func (k *Keeper) Survey(ctx context.Context) ([]Condition, error) {
	ctx, cancel := context.WithTimeout(ctx, surveyPatience)
	defer cancel()
	full := k.alarms()
	members := k.Member.server.Server.Cluster().Members()
	all := make([]Condition, len(members))
	var asked sync.WaitGroup
	for i, m := range members {
		c := Condition{ID: uint64(m.ID), Name: m.Name, URL: strings.Join(m.ClientURLs, ","), Learner: m.IsLearner, Full: full[uint64(m.ID)]}
		asked.Go(func() {
			all[i] = c
			answer, err := k.status(ctx, c)
			if err != nil {
				all[i].Err = fmt.Errorf("ask etcd %s how it is: %w", c.Name, err)
				return
			}
			all[i].Leader = answer.Leader == answer.Header.MemberId
			all[i].Size, all[i].InUse, all[i].Quota = answer.DbSize, answer.DbSizeInUse, answer.DbSizeQuota
		})
	}
	asked.Wait()
	return all, ctx.Err()
}

func (k *Keeper) status(ctx context.Context, c Condition) (*clientv3.StatusResponse, error) {
	if c.ID == k.own() {
		return k.Member.Client.Status(ctx, "")
	}
	var answer *clientv3.StatusResponse
	err := k.at(ctx, c, func(client *clientv3.Client, url string) (err error) {
		answer, err = client.Status(ctx, url)
		return err
	})
	return answer, err
}

// at calls another member.
func (k *Keeper) at(ctx context.Context, c Condition, call func(client *clientv3.Client, url string) error) error {
	url, _, _ := strings.Cut(c.URL, ",")
	if url == "" {
		return errNotStarted
	}
	client, err := Dial(ctx, []string{url}, k.Credentials)
	if err != nil {
		return err
	}
	defer client.Close()
	return call(client, url)
}

func (k *Keeper) own() uint64 { return uint64(k.Member.server.Server.MemberID()) }

// alarms returns the members whose alarm stands, the one that stops all writes. Every member knows
// the alarms of all.
func (k *Keeper) alarms() map[uint64]bool {
	full := map[uint64]bool{}
	for _, a := range k.Member.server.Server.Alarms() {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			full[a.MemberID] = true
		}
	}
	return full
}
