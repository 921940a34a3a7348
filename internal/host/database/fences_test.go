package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"howdah/internal/failover/fence"
	"howdah/internal/host/database/cut"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// knife remembers which cuts it was asked for.
type knife struct {
	mu    sync.Mutex
	cuts  []string // cases and own standbys, guarded by mu
	err   error    // guarded by mu
	blunt string   // only for this standby; guarded by mu
}

func (k *knife) Name() string { return "knife" }

func (k *knife) Sync(_ context.Context, cuts []cut.Cut, tell func(...cut.Cut)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cuts = nil
	var made []cut.Cut
	for _, c := range cuts {
		if k.err != nil && (k.blunt == "" || k.blunt == c.Standby.Name()) {
			continue
		}
		k.cuts = append(k.cuts, c.From.ID+" "+c.Standby.Name())
		made = append(made, c)
	}
	slices.Sort(k.cuts)
	tell(made...)
	return k.err
}

func (k *knife) fail(err error, only string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err, k.blunt = err, only
}

func (k *knife) holds(ids ...string) func() error {
	return func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !slices.Equal(k.cuts, ids) {
			return fmt.Errorf("cuts %v, want %v", k.cuts, ids)
		}
		return nil
	}
}

// standbyWorld has an agent with the standby db-1.m1.
func standbyWorld(t *testing.T) (*world, *knife) {
	t.Helper()
	w, k := newWorld(t, waits), &knife{}
	w.run(func(a *Host) { a.fences.Cutter = k })
	w.start(hosttest.Running(1))
	return w, k
}

// half is a server that accepts and answers the first bytes of a client with what
// it was given, or never.
func half(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 8)
				if _, err := io.ReadFull(conn, buffer); err == nil && answer != "" {
					conn.Write([]byte(answer))
				}
				io.Copy(io.Discard, conn) // until the client goes
			}()
		}
	}()
	return l.Addr().String()
}

// A witness tells apart who answers and who only accepts, as a frozen server does.
func TestWitness(t *testing.T) {
	t.Parallel()
	w, k := standbyWorld(t)
	a := w.Assignment("db-1", 1)
	w.answers(a, func(http.ResponseWriter, *http.Request) {})
	alive := fmt.Sprintf("127.0.0.1:%d", a.RESTPort)
	cases := []struct {
		name, postgres, rest string
		wantPG, wantPatroni  bool
	}{
		{"both answer", half(t, "S"), alive, true, true},
		{"frozen", half(t, ""), half(t, ""), false, false},
		{"nobody listens", testkit.FreeAddr(t), testkit.FreeAddr(t), false, false},
		{"Patroni alone", half(t, ""), alive, false, true},
	}
	for i, c := range cases {
		s := hosttest.Suspect(c.postgres, c.rest)
		s.ID = fmt.Sprintf("case-%d", i)
		w.Put(state.Fence("db-1", "m2"), s)
		testkit.Eventually(t, hosttest.Soon, func() error {
			seen, err := state.Get[fence.Witness](t.Context(), w.Store, state.Witness(s.ID, hosttest.Name))
			if err != nil || seen.Value.Case != s.ID {
				return fmt.Errorf("no testimony: %+v, %w", seen.Value, err)
			}
			if seen.Value.Postgres != c.wantPG || seen.Value.Patroni != c.wantPatroni || seen.Value.Host != hosttest.Name {
				return fmt.Errorf("%s: %+v", c.name, seen.Value)
			}
			return nil
		})
	}
	if err := k.holds()(); err != nil {
		t.Errorf("a suspicion alone: %v", err)
	}
}

// The report of a cut comes after the cut, never before, and the cut is lifted when
// the case is over.
func TestCutting(t *testing.T) {
	t.Parallel()
	w, k := standbyWorld(t)
	reported := func() error {
		r, err := state.Get[fence.CutReport](t.Context(), w.Store, state.Cut("case-1", "m1"))
		if err != nil {
			return err
		}
		if r.Value.Case != "case-1" || r.Value.Member != "m1" || r.Value.How != "knife" {
			return fmt.Errorf("report %+v", r.Value)
		}
		return nil
	}
	k.fail(errors.New("blunt"), "")
	c := hosttest.Suspect(testkit.FreeAddr(t), testkit.FreeAddr(t))
	c.Phase = fence.Cutting
	w.Put(state.Fence("db-1", "m2"), c)
	w.passed("db-2")
	w.passed("db-3")
	if err := reported(); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("reported a cut that failed: %v", err)
	}
	k.fail(nil, "")
	testkit.Eventually(t, hosttest.Soon, reported)
	testkit.Eventually(t, hosttest.Soon, k.holds("case-1 m1"))

	c.Phase = fence.Revoked
	w.Put(state.Fence("db-1", "m2"), c)
	w.passed("db-4")
	testkit.Eventually(t, hosttest.Soon, k.holds("case-1 m1"))
	_, err := w.Store.Commit(t.Context(), state.Delete(state.Fence("db-1", "m2")))
	w.Must(err)
	testkit.Eventually(t, hosttest.Soon, k.holds())
}

// Each of the own standbys is cut and told of by itself: one that is sick does not
// hide the others, and a second lost primary of the same database not the first.
func TestCutsAreTheStandbysOwn(t *testing.T) {
	t.Parallel()
	w, k := standbyWorld(t)
	b := w.Assignment("db-1", 1)
	b.Name = "m3"
	b.ID = "db-1.m3"
	w.Assign(b)
	w.Awaits(b.ID, hosttest.Soon, hosttest.Running(1))
	k.fail(errors.New("blunt"), "m1")
	first := hosttest.Suspect(testkit.FreeAddr(t), testkit.FreeAddr(t))
	first.Phase, first.Leadership.Sync.Standbys = fence.Cutting, []string{"m1", "m3"}
	w.Put(state.Fence("db-1", "m2"), first)
	told := func(id, member string) func() error {
		return func() error {
			_, err := state.Get[fence.CutReport](t.Context(), w.Store, state.Cut(id, member))
			return err
		}
	}
	testkit.Eventually(t, hosttest.Soon, told("case-1", "m3"))
	if err := told("case-1", "m1")(); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("of a standby that was not cut: %v", err)
	}
	k.fail(nil, "")
	testkit.Eventually(t, hosttest.Soon, told("case-1", "m1"))

	second := hosttest.Suspect(testkit.FreeAddr(t), testkit.FreeAddr(t))
	second.ID, second.Phase, second.Leadership.Leader, second.Leadership.Sync.Leader = "case-2", fence.Cutting, "m4", "m4"
	w.Put(state.Fence("db-1", "m4"), second)
	testkit.Eventually(t, hosttest.Soon, told("case-2", "m1"))
	testkit.Eventually(t, hosttest.Soon, k.holds("case-1 m1", "case-1 m3", "case-2 m1"))
}

// A case against a primary of which we have no synchronous standby is not ours.
func TestACaseOfOthers(t *testing.T) {
	t.Parallel()
	w, k := standbyWorld(t)
	c := hosttest.Suspect(testkit.FreeAddr(t), testkit.FreeAddr(t))
	c.Phase, c.Leadership.Sync.Standbys = fence.Cutting, []string{"m3"}
	w.Put(state.Fence("db-1", "m2"), c)
	w.passed("db-2")
	if _, err := state.Get[fence.CutReport](t.Context(), w.Store, state.Cut("case-1", "m1")); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("reported a cut: %v", err)
	}
	if err := k.holds()(); err != nil {
		t.Error(err)
	}
}

// This host was silent, and its primary was replaced meanwhile: it gives in. If the
// primary was elected again, it serves on.
func TestGivingIn(t *testing.T) {
	t.Parallel()
	for _, leader := range []string{"m2", "m1"} {
		t.Run(leader+" leads", func(t *testing.T) {
			w := newWorld(t, serves)
			w.run(nil)
			a := w.startPrimary()
			w.Leads("db-1", leader, "m3")
			pid := w.Lines(a.ID, "data/postmaster.pid")[0]
			c := hosttest.Suspect(testkit.FreeAddr(t), testkit.FreeAddr(t))
			c.Phase, c.Host, c.Leadership.Leader = fence.Revoked, hosttest.Name, "m1"
			w.Put(state.Fence("db-1", "m1"), c)
			if leader == "m1" {
				w.passed("db-2")
				w.passed("db-3")
				w.Awaits(a.ID, hosttest.Soon, serving)
				if len(w.Lines(a.ID, "starts")) != 1 || w.Lines(a.ID, "data/postmaster.pid")[0] != pid {
					t.Error("a primary that was elected again gave in")
				}
				return
			}
			w.restarted(a.ID, 2)
			testkit.Eventually(t, hosttest.Soon, func() error {
				dead, err := state.Get[fence.Death](t.Context(), w.Store, state.Death("db-1", "m1"))
				if err == nil && !dead.Value.Proof.Off() {
					err = fmt.Errorf("the death is told of as %+v", dead.Value)
				}
				return err
			})
			if w.Lines(a.ID, "data/postmaster.pid")[0] == pid {
				w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
					if w.Lines(a.ID, "data/postmaster.pid")[0] == pid {
						return fmt.Errorf("the old PostgreSQL goes on: %+v", r)
					}
					return nil
				})
			}
		})
	}
}

// The standby of very many primaries that were lost at once tells of all its cuts, in
// transactions that etcd takes.
func TestManyCutsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	w, _ := standbyWorld(t)
	const many = 150
	for i := range many {
		c := hosttest.Suspect("127.0.0.1:1", "127.0.0.1:2")
		c.ID, c.Phase, c.Leadership.Leader = fmt.Sprintf("case-%03d", i), fence.Cutting, fmt.Sprintf("m%d", 100+i)
		w.Put(state.Fence("db-1", c.Leadership.Leader), c)
	}
	testkit.Eventually(t, hosttest.Soon, func() error {
		told, err := state.List[fence.CutReport](t.Context(), w.Store, state.CutRoot)
		if err == nil && len(told) != many {
			err = fmt.Errorf("%d cuts are told of", len(told))
		}
		return err
	})
}

// A runner that hangs in the middle of its work, with as much waiting for it as there may
// be, delays no cut and no other case of its host.
func TestARunnerThatHangsDelaysNoFence(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t, waits), &knife{}
	a, _ := w.run(func(a *Host) { a.fences.Cutter = k })
	w.start(hosttest.Running(1))
	hung := w.Assignment("db-2", 1)
	w.Assign(hung)
	w.Awaits(hung.ID, hosttest.Soon, hosttest.Running(1))
	let := make(chan struct{})
	defer close(let)
	r := a.runner(t.Context(), hung.ID)
	for range 100 {
		r.Do(func(context.Context) { <-let })
	}
	lost := hosttest.Suspect(testkit.FreeAddr(t), testkit.FreeAddr(t))
	lost.ID, lost.Phase, lost.Host = "case-own", fence.Revoked, hosttest.Name
	lost.Leadership.Database, lost.Leadership.Leader, lost.Leadership.Sync.Standbys = "db-2", "m1", []string{"m2"}
	w.Put(state.Fence("db-2", "m1"), lost)
	other := hosttest.Suspect(testkit.FreeAddr(t), testkit.FreeAddr(t))
	other.Phase = fence.Cutting
	w.Put(state.Fence("db-1", "m2"), other)
	testkit.Eventually(t, hosttest.Soon, k.holds("case-1 m1"))
	testkit.Eventually(t, hosttest.Soon, func() error {
		_, err := state.Get[fence.CutReport](t.Context(), w.Store, state.Cut("case-1", "m1"))
		return err
	})
	// New assignments of other members come through, too.
	next := w.Assignment("db-1", 2)
	w.Assign(next)
	w.Awaits(next.ID, hosttest.Soon, hosttest.Running(2))
}
