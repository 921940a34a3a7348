package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// reboot ends all that runs on the host, and takes its cuts out of the kernel.
func (w *world) reboot(stop func()) {
	w.Helper()
	stop()
	w.Must(StopHost(w.Context(), w.HomeID, hosttest.Name, w.Dir, true))
}

// cutting is a case whose cut was told of before the host was started again.
func (w *world) cutting() {
	w.Helper()
	c := hosttest.Suspect(testkit.FreeAddr(w), testkit.FreeAddr(w))
	c.Phase = fence.Cutting
	w.Put(state.Fence("db-1", "m2"), c)
	w.Put(state.Cut(c.ID, "m1"), fence.CutReport{Case: c.ID, Host: hosttest.Name, Member: "m1", How: "knife"})
}

// A host is started again after it told of a cut: the standby is not started before the cut
// is there again, and says why. Members of other databases do not wait for it.
func TestNothingIsStartedBeforeItsCutIsThereAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	k := &knife{}
	_, stop := w.run(func(a *Host) { a.fences.Cutter = k })
	a := w.start(hosttest.Running(1))
	w.passed("db-2")
	w.restarted("db-2.m1", 1)
	w.restarted(a.ID, 1)
	w.reboot(stop)
	w.cutting()
	k.fail(errors.New("blunt"), "")
	w.run(func(a *Host) { a.fences.Cutter = k })
	w.restarted("db-2.m1", 2)
	w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if r.Patroni || r.Problem != member.StartFails || !strings.Contains(r.Detail, "cut off from a lost primary first: blunt") {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	w.restarted(a.ID, 1)
	k.fail(nil, "")
	w.restarted(a.ID, 2)
	w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if !r.Patroni || r.Problem != member.None {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
}

// slowToTell is an etcd that says nothing of cases until it is let.
type slowToTell struct {
	clientv3.KV
	told *atomic.Bool
}

func (s slowToTell) Txn(ctx context.Context) clientv3.Txn { return slowTxn{s.KV.Txn(ctx), ctx, s.told} }

type slowTxn struct {
	clientv3.Txn
	ctx  context.Context
	told *atomic.Bool
}

func (s slowTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		for op.IsGet() && string(op.KeyBytes()) == state.FenceRoot && !s.told.Load() {
			if !pace.Sleep(s.ctx, 10*time.Millisecond) {
				break
			}
		}
	}
	return s.Txn.Then(ops...)
}

// … nor before it was asked which primaries are lost.
func TestNothingIsStartedBeforeTheCasesAreKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	k, told := &knife{}, &atomic.Bool{}
	_, stop := w.run(func(a *Host) { a.fences.Cutter = k })
	a := w.start(hosttest.Running(1))
	w.restarted(a.ID, 1)
	w.reboot(stop)
	w.cutting()
	w.Between = func(kv clientv3.KV) clientv3.KV { return slowToTell{kv, told} }
	w.run(func(a *Host) { a.fences.Cutter = k })
	w.holds(2*time.Second, func() error {
		if n := len(w.Lines(a.ID, "starts")); n != 1 {
			return fmt.Errorf("it was started, the %d. time", n)
		}
		return nil
	})
	told.Store(true)
	w.restarted(a.ID, 2)
	if err := k.holds("case-1 m1")(); err != nil {
		t.Error(err)
	}
}

// A PostgreSQL that runs gets its Patroni back at once, whatever etcd says: it would be
// ended without one.
func TestARunningPostgresDoesNotWaitForTheCases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	_, stop := w.run(nil)
	a := w.startPrimary()
	server := w.Lines(a.ID, "data/postmaster.pid")
	stop()
	w.kill(a.ID, "starts")
	w.Between = func(kv clientv3.KV) clientv3.KV { return slowToTell{kv, &atomic.Bool{}} }
	w.run(nil)
	w.restarted(a.ID, 2)
	if now := w.Lines(a.ID, "data/postmaster.pid"); !slices.Equal(now, server) {
		t.Errorf("PostgreSQL was %v, and is %v", server, now)
	}
}
