package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/patroni"
)

// A member that began to bootstrap died, and its key stays. Another bootstrap begins.
func TestABootstrapThatDied(t *testing.T) {
	s := begin(t, nil)
	for n := range 10 {
		name := fmt.Sprintf("orders%d", n)
		s.must(s.rig.Ask(s.Context(), name, n%2 == 0), "ask for "+name)
		id, err := s.rig.Database(s.Context(), name)
		s.must(err, "find "+name)
		key := patroni.InitializeKey(id)
		won, err := s.rig.Store.Client.Txn(s.Context()).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, "")).Commit()
		s.must(err, "pretend that a member bootstraps")
		s.must(s.rig.WaitStatus(s.Context(), name, "available", 2*time.Minute), name)
		if won.Succeeded {
			return
		}
	}
	t.Error("Patroni was quicker each time")
}

// etcd stops while the first primary starts. Patroni makes that a standby, and would wait for ever
// for the end of its recovery.
func TestEtcdStopsDuringABootstrap(t *testing.T) {
	s := begin(t, nil)
	s.must(s.rig.Ask(s.Context(), "orders", false), "ask for orders")
	id, err := s.rig.Database(s.Context(), "orders")
	s.must(err, "find orders")
	s.eventually(30*time.Second, func() error { return s.starts(id) })
	serve := s.rig.PID("serve")
	s.must(syscall.Kill(serve, syscall.SIGSTOP), "stop serve")
	began := time.Now()
	s.eventually(20*time.Second, func() error {
		if time.Since(began) < 10*time.Second {
			return errors.New("etcd is away")
		}
		return nil
	})
	s.must(syscall.Kill(serve, syscall.SIGCONT), "let serve go on")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 2*time.Minute), "orders")
}

// starts returns nil once the first member of a database has a postmaster.
func (s *story) starts(id string) error {
	for _, zone := range []string{"a", "b", "c"} {
		if _, err := os.Stat(filepath.Join(s.rig.HostDir(zone), "members", id+".m1", "data", "postmaster.pid")); err == nil {
			return nil
		}
	}
	return errors.New("no postmaster yet")
}
