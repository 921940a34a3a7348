package keys

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/host/agent"
	"howdah/internal/model/patroni"
)

var errRenaming = errors.New("its keys changed meanwhile")

// Move hands what the member's last Patroni, which has ended, had in etcd under
// another name to the next one. The leader key is never away: its new lease is as long
// as Patroni's own, which renews it as soon as it runs.
func (k *Ring) Move(ctx context.Context) error {
	from, to := k.Last().Name, k.Want.PatroniName()
	if from == "" || from == to {
		return nil
	}
	if k.Agent.Store == nil {
		return fmt.Errorf("give %s the name %s: etcd is not connected yet", k.ID, to)
	}
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	if err := moveKeys(ctx, k.Agent.Store.Client, k.Want.Scope, from, to); err != nil {
		return fmt.Errorf("give %s the name %s: %w", k.ID, to, err)
	}
	return nil
}

func moveKeys(ctx context.Context, client *clientv3.Client, scope, from, to string) error {
	leaderKey, memberKey := patroni.LeaderKey(scope), patroni.MemberKey(scope, from)
	answer, err := client.Txn(ctx).Then(clientv3.OpGet(leaderKey), clientv3.OpGet(memberKey)).Commit()
	if err != nil {
		return err
	}
	leader, own := answer.Responses[0].GetResponseRange().Kvs, answer.Responses[1].GetResponseRange().Kvs
	leads := len(leader) > 0 && string(leader[0].Value) == from
	if !leads && len(own) == 0 {
		return nil
	}
	lease, err := client.Grant(ctx, patroni.TTL)
	if err != nil {
		return err
	}
	var same []clientv3.Cmp
	var moves []clientv3.Op
	if leads {
		same = append(same, clientv3.Compare(clientv3.ModRevision(leaderKey), "=", leader[0].ModRevision))
		moves = append(moves, clientv3.OpPut(leaderKey, to, clientv3.WithLease(lease.ID)))
	}
	if len(own) > 0 {
		same = append(same, clientv3.Compare(clientv3.ModRevision(memberKey), "=", own[0].ModRevision))
		moves = append(moves, clientv3.OpDelete(memberKey),
			clientv3.OpPut(patroni.MemberKey(scope, to), string(own[0].Value), clientv3.WithLease(lease.ID)))
	}
	done, err := client.Txn(ctx).If(same...).Then(moves...).Commit()
	if err != nil {
		return err
	}
	if !done.Succeeded {
		return errRenaming
	}
	return nil
}
