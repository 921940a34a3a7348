package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/host/agent"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/patroni"
)

var errRenaming = errors.New("its keys changed meanwhile")

// rename has a running Patroni started again under the name that it was assigned: it
// takes no other while it runs. It reports whether Patroni was ended for that.
// PostgreSQL goes on, and the next Patroni takes it over with the keys of the old one,
// so that nobody is elected in between.
func (r *runner) rename(ctx context.Context) bool {
	if r.named == r.Want.PatroniName() || !r.mayRename() {
		return false
	}
	if err := r.writable(ctx); err != nil {
		return false // the next Patroni could not take over
	}
	r.Log.Info("starting Patroni again under another name", "from", r.named, "to", r.Want.PatroniName())
	if err := r.host.Procs.Signal(r.patroni.Process, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		r.Log.Warn("end Patroni", "error", err)
		return false
	}
	r.retry = pace.Backoff{}
	return true
}

// mayRename: it is a standby of a database that follows another one, so that nothing is
// acknowledged here which an election could lose, and Patroni makes no data now.
func (r *runner) mayRename() bool {
	if r.Want.Cluster.Upstream == nil {
		return false
	}
	if !r.postmaster.Alive() {
		return !r.patroniIsBusy()
	}
	_, err := os.Stat(filepath.Join(r.dataDir(), standbyFile))
	return err == nil
}

// lastConfig is of the configuration that Patroni was started with last what it takes no
// other of while it runs.
type lastConfig struct {
	Name string `json:"name"`
	Etcd struct {
		Hosts []string `json:"hosts"`
		Cert  string   `json:"cert"`
	} `json:"etcd3"`
}

// onDisk reads it; it is empty where there is none. The name there is written after the
// keys were moved, so that it says whether they were.
func (r *runner) onDisk() (last lastConfig) {
	text, err := r.User().ReadFile(filepath.Join(r.Dir(), patroni.ConfigFile))
	if err != nil || json.Unmarshal(text, &last) != nil {
		return lastConfig{}
	}
	return last
}

// moveKeys hands what the member's last Patroni, which has ended, had in etcd under
// another name to the next one. The leader key is never away: its new lease is as long
// as Patroni's own, which renews it as soon as it runs.
func (r *runner) moveKeys(ctx context.Context) error {
	from, to := r.onDisk().Name, r.Want.PatroniName()
	if from == "" || from == to {
		return nil
	}
	if r.host.Store == nil {
		return fmt.Errorf("give %s the name %s: etcd is not connected yet", r.ID, to)
	}
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	if err := moveKeys(ctx, r.host.Store.Client, r.Want.Scope, from, to); err != nil {
		return fmt.Errorf("give %s the name %s: %w", r.ID, to, err)
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
