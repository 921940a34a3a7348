package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/host/agent"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// answers stands for the REST API of a member's Patroni.
func (w *world) answers(a member.Assignment, handler http.HandlerFunc) {
	w.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", a.Address, a.RESTPort))
	w.Must(err)
	server := &httptest.Server{Listener: w.Secure(l), Config: &http.Server{Handler: handler, ReadHeaderTimeout: hosttest.Soon}}
	server.Start()
	w.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
}

func TestARestartIsPatronisWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	a := w.start(hosttest.Running(1))
	var calls atomic.Int32
	w.answers(a, func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/restart" {
			rw.WriteHeader(http.StatusNotFound)
			return
		}
		if calls.Add(1) > 1 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			rw.Write([]byte("postgres is still starting"))
		}
	})
	w.Ask("db-1/restart-1", member.Restart, a.ID, hosttest.Soon)
	if r := w.Ended("db-1/restart-1"); !r.Done || r.Failed || r.Member != a.ID || r.Began.After(r.Ended) {
		t.Errorf("result %+v", r)
	}
	w.Ask("db-1/restart-2", member.Restart, a.ID, hosttest.Soon)
	if r := w.Ended("db-1/restart-2"); r.Done || !r.Failed || !strings.Contains(r.Detail, "still starting") {
		t.Errorf("result of a refusal: %+v", r)
	}
	// The task is written again, as by a control plane that forgot that it did.
	w.Ask("db-1/restart-1", member.Restart, a.ID, hosttest.Soon)
	w.passed("db-2")
	if n := calls.Load(); n != 2 {
		t.Errorf("Patroni was asked %d times, want 2", n)
	}
}

// A database that was just made serves before its Patroni has ended the bootstrap.
func TestARestartWaitsForABusyPatroni(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	a := w.start(hosttest.Running(1))
	var calls atomic.Int32
	var always atomic.Bool
	w.answers(a, func(rw http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 || always.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
			rw.Write([]byte("bootstrap already in progress"))
		}
	})
	w.Ask("db-1/restart-1", member.Restart, a.ID, hosttest.Soon)
	if r := w.Ended("db-1/restart-1"); !r.Done || calls.Load() != 3 {
		t.Errorf("after %d requests, want 3: %+v", calls.Load(), r)
	}
	always.Store(true)
	w.Ask("db-1/restart-2", member.Restart, a.ID, 2*time.Second)
	if r := w.Ended("db-1/restart-2"); !r.Failed || r.Done {
		t.Errorf("of a Patroni that stays busy until the deadline: %+v", r)
	}
}

// shaky is an etcd whose disk stalls: of each three writes of a result it refuses the
// first, and does the second without an answer.
type shaky struct {
	clientv3.KV
	writes *atomic.Int32
}

func (s shaky) Txn(ctx context.Context) clientv3.Txn {
	return &shakyTxn{Txn: s.KV.Txn(ctx), writes: s.writes}
}

type shakyTxn struct {
	clientv3.Txn
	writes  *atomic.Int32
	results bool
}

func (t *shakyTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(conditions...)
	return t
}

func (t *shakyTxn) Then(changes ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(changes...)
	t.results = strings.HasPrefix(string(changes[0].KeyBytes()), state.ResultRoot)
	return t
}

func (t *shakyTxn) Commit() (*clientv3.TxnResponse, error) {
	timeout := errors.New("etcdserver: request timed out")
	if !t.results {
		return t.Txn.Commit()
	}
	switch t.writes.Add(1) % 3 {
	case 1:
		return nil, timeout
	case 2:
		if _, err := t.Txn.Commit(); err != nil {
			return nil, err
		}
		return nil, timeout
	}
	return t.Txn.Commit()
}

func TestATaskIsDoneAndToldOfAlthoughEtcdStalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	var writes, calls atomic.Int32
	w.Between = func(kv clientv3.KV) clientv3.KV { return shaky{KV: kv, writes: &writes} }
	w.run(nil)
	a := w.start(hosttest.Running(1))
	w.answers(a, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	w.Ask("db-1/restart", member.Restart, a.ID, time.Minute)
	if r := w.Ended("db-1/restart"); !r.Done || r.Failed {
		t.Errorf("result %+v", r)
	}
	// Its beginning took three writes, and so does its end.
	testkit.Eventually(t, hosttest.Soon, func() error {
		if n := writes.Load(); n != 6 {
			return fmt.Errorf("%d writes, want 6", n)
		}
		return nil
	})
	if n := calls.Load(); n != 1 {
		t.Errorf("Patroni was asked %d times, want once", n)
	}
}

// The agent is killed in the middle of a restart: the next one does not do it
// again, and says that it does not know.
func TestADeedIsDoneOnceAlthoughTheAgentDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	kill := w.runProcess()
	a := w.start(hosttest.Running(1))
	asked, release := make(chan struct{}, 10), make(chan struct{})
	w.answers(a, func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	})
	t.Cleanup(func() { close(release) }) // before the server's end, which waits for its answers
	w.Ask("db-1/restart", member.Restart, a.ID, 5*time.Minute)
	select {
	case <-asked:
	case <-time.After(hosttest.Soon):
		t.Fatal("the restart does not begin")
	}
	kill()
	w.run(nil)
	if r := w.Ended("db-1/restart"); r.Done || !r.Failed || !strings.Contains(r.Detail, "in the middle") {
		t.Errorf("result %+v", r)
	}
	w.passed("db-2")
	if len(asked) > 0 {
		t.Error("the restart was asked for again")
	}
}

// A handover that its agent died in is known to have worked when another member
// leads, and not to have when the same one does. The task may come before the
// assignment: it is another watch that brings it.
func TestAHandoverIsConcludedByWhoLeads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		leader         string
		assigned, done bool
	}{{"m2", true, true}, {"m1", true, false}, {"m2", false, true}, {"m1", false, false}} {
		w := newWorld(t, waits)
		a := w.Assignment("db-1", 1)
		if c.assigned {
			w.Assign(a)
		}
		w.Leads("db-1", c.leader, "m1")
		w.Put(state.Result("db-1/handover"), member.Result{ID: "db-1/handover", Member: a.ID, Began: time.Now()})
		w.Ask("db-1/handover", member.Handover, a.ID, hosttest.Soon)
		w.run(nil)
		if r := w.Ended("db-1/handover"); r.Done != c.done || r.Failed == c.done {
			t.Errorf("%+v: result %+v", c, r)
		}
	}
}

func TestAHandoverIsRefusedWhereItCouldLose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.run(nil)
	a := w.startPrimary()
	pid := w.Lines(a.ID, "data/postmaster.pid")[0]
	cases := []struct{ name, leader, standbys, want string }{
		{"nobody in sync", "m1", "", "no standby has every acknowledged write"},
		{"not the primary", "m2", "m1", "not the primary"},
	}
	for i, c := range cases {
		w.Leads("db-1", c.leader, c.standbys)
		id := fmt.Sprintf("db-1/handover-%d", i)
		w.Ask(id, member.Handover, a.ID, hosttest.Soon)
		if r := w.Ended(id); !r.Failed || !strings.Contains(r.Detail, c.want) {
			t.Errorf("%s: result %+v", c.name, r)
		}
		if leader := w.leader("db-1"); leader != c.leader {
			t.Errorf("%s: %q leads", c.name, leader)
		}
	}
	if now := w.Lines(a.ID, "data/postmaster.pid")[0]; now != pid || len(w.Lines(a.ID, "starts")) != 1 {
		t.Error("a refused handover touched the member")
	}
}

func TestATaskOfANewerControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Ask("db-1/polish", "polish", a.ID, hosttest.Soon)
	if r := w.Ended("db-1/polish"); !r.Failed || !strings.Contains(r.Detail, "polish") {
		t.Errorf("result %+v", r)
	}
}

// The clocks of control plane and host differ: what counts is how long a task takes.
func TestATaskIsNotEndedByClocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	a := w.start(hosttest.Running(1))
	release := make(chan struct{})
	var hanging atomic.Bool
	w.answers(a, func(http.ResponseWriter, *http.Request) {
		if hanging.Load() {
			<-release
		}
	})
	t.Cleanup(func() { close(release) })
	give := func(id string, within, left time.Duration) member.Result {
		w.Put(state.Task(hosttest.Name, id), member.Task{
			ID: id, Kind: member.Restart, Host: hosttest.Name, Member: a.ID, Within: within, Deadline: time.Now().Add(left),
		})
		return w.Ended(id)
	}
	if r := give("db-1/ahead", hosttest.Soon, -hosttest.Soon/2); !r.Done {
		t.Errorf("the host's clock is ahead: %+v", r)
	}
	if r := give("db-1/forgotten", hosttest.Soon, -2*hosttest.Soon); !r.Failed || !strings.Contains(r.Detail, "long past") {
		t.Errorf("a task from long ago: %+v", r)
	}
	hanging.Store(true)
	if r := give("db-1/behind", time.Second, time.Hour); !r.Failed || !strings.Contains(r.Detail, "deadline exceeded") {
		t.Errorf("the host's clock is behind: %+v", r)
	}
}

// Patroni was killed and does not end, as when it waits for a dead disk: the handover
// is given up, PostgreSQL is left alone, and the runner goes on.
func TestAHandoverDoesNotWaitForeverForPatroni(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	a, _ := w.run(nil)
	process := func() proc.Process {
		cmd := exec.Command("sleep", "1000")
		w.Must(cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		p, err := a.Procs.Find(cmd.Process.Pid)
		w.Must(err)
		return p
	}
	r := unstarted(a, "db-1.m1")
	*r.patroni = agent.Process{Process: process(), Exit: make(chan proc.Exit)}
	*r.postmaster = agent.Process{Process: process(), Exit: make(chan proc.Exit)}
	if err := r.deeds.stopDatabase(t.Context()); !errors.Is(err, agent.ErrTask) {
		t.Errorf("%v, want errTask", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := r.deeds.stopDatabase(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after its deadline: %v", err)
	}
	if _, err := a.Procs.Find(r.postmaster.Process.PID); err != nil {
		t.Errorf("PostgreSQL was stopped: %v", err)
	}
}

// Only a PostgreSQL that is no primary, of a database that has none, is ended to be
// started anew.
func TestARevivalIsRefused(t *testing.T) {
	t.Parallel()
	for name, leader := range map[string]string{"there is a primary": "m2", "it leads itself": "m1", "PostgreSQL does not answer": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waits)
			w.run(nil)
			a := w.start(hosttest.Running(1))
			if leader != "" {
				_, err := w.Store.Client.Put(t.Context(), patroni.LeaderKey(a.Scope), leader)
				w.Must(err)
			}
			w.Ask("revive-1", member.Revive, a.ID, time.Minute)
			if got := w.Ended("revive-1"); !got.Failed || got.Done {
				t.Errorf("ended with %+v", got)
			}
			w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
		})
	}
}

// force asks for a handover as somebody who insists on it does.
func (w *world) force(id, of string) {
	w.Helper()
	w.Put(state.Task(hosttest.Name, id), member.Task{
		ID: id, Kind: member.Handover, Host: hosttest.Name, Member: of, Deadline: time.Now().Add(time.Minute), Force: true,
	})
}
