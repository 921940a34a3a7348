package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/patience"
)

// world is an operation with its shelf, in an etcd that others share.
type world struct {
	t     *testing.T
	home  *hometest.Home
	op    string
	shelf shelf
	base  order
	lead  string // the key of the election that counts now
}

var worlds atomic.Int64

func newWorld(t *testing.T, h *hometest.Home, base order) *world {
	t.Helper()
	w := &world{t: t, home: h, op: fmt.Sprintf("shelve-%d", worlds.Add(1)), shelf: shelf(t.TempDir()), base: base}
	r, err := operation.New(w.op, shelvingKind, about, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.commit(state.Swap(state.Operation(w.op), 0, r))
	return w
}

func (w *world) commit(ops ...state.Op) int64 {
	w.t.Helper()
	revision, err := w.home.Store.Commit(w.t.Context(), ops...)
	if err != nil {
		w.t.Fatal(err)
	}
	return revision
}

// elect has the next child lead, and nobody before it.
func (w *world) elect() (string, int64) {
	w.t.Helper()
	lead := fmt.Sprintf("%s%s-%d", state.ElectionRoot, w.op, worlds.Add(1))
	ops := []state.Op{state.Put(lead, "child")}
	if w.lead != "" {
		ops = append(ops, state.Delete(w.lead))
	}
	w.lead = lead
	return lead, w.commit(ops...)
}

// process is a child.
type process struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan error
}

// start starts a child that leads from now on.
func (w *world) start(change func(*order)) *process {
	w.t.Helper()
	o := w.base
	o.Etcd, o.Certs, o.Op, o.Shelf = w.home.Etcd, w.home.CertDir(), w.op, string(w.shelf)
	o.Lead, o.Rev = w.elect()
	if change != nil {
		change(&o)
	}
	text, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &process{done: make(chan error, 1)}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), "HOWDAH_TEST_OPERATION="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	testkit.Start(w.t, p.cmd)
	go func() { p.done <- p.cmd.Wait() }()
	w.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// wait waits for a child. It answers whether it killed itself.
func (w *world) wait(p *process) (killed bool) {
	w.t.Helper()
	select {
	case err := <-p.done:
		status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		killed = status.Signaled() && status.Signal() == syscall.SIGKILL
		if err != nil && !killed {
			w.t.Fatalf("a child: %v\n%s", err, p.out.String())
		}
	case <-time.After(patience.For(60 * time.Second)):
		_ = p.cmd.Process.Kill()
		<-p.done
		w.t.Fatalf("a child does not end:\n%s", p.out.String())
	}
	return killed
}

// history are all records that the operation had.
func (w *world) history() []operation.Record {
	w.t.Helper()
	key := state.Operation(w.op)
	last, err := w.home.Store.Client.Get(w.t.Context(), key)
	if err != nil || len(last.Kvs) == 0 {
		w.t.Fatalf("%v, %v", last, err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience.For(10*time.Second))
	defer cancel()
	var all []operation.Record
	for answer := range w.home.Store.Client.Watch(ctx, key, clientv3.WithRev(last.Kvs[0].CreateRevision)) {
		for _, e := range answer.Events {
			var r operation.Record
			if err := json.Unmarshal(e.Kv.Value, &r); err != nil {
				w.t.Fatal(err)
			}
			all = append(all, r)
			if e.Kv.ModRevision == last.Kvs[0].ModRevision {
				return all
			}
		}
	}
	w.t.Fatal("the history has no end")
	return nil
}

// check holds everything that must be so against what is, once the operation has ended.
func (w *world) check(state operation.State) {
	w.t.Helper()
	all := w.history()
	last := all[len(all)-1]
	if last.State != state {
		w.t.Fatalf("it ended %s: %+v", last.State, last)
	}
	steps := w.checkHistory(all)
	w.checkShelf(state, last, steps)
	w.checkKeys(state)
}

// checkHistory: turns and progress only grow, a state leads where it may, and every step was
// recorded before it was taken. It answers which step each turn was of.
func (w *world) checkHistory(all []operation.Record) map[int64]string {
	w.t.Helper()
	steps := map[int64]string{}
	for n, r := range all {
		if n == 0 {
			continue
		}
		before := all[n-1]
		switch {
		case r.Turn < before.Turn, r.Progress.Done < before.Progress.Done, before.State.Ended():
			w.t.Errorf("%+v\nafter %+v", r, before)
		case before.State == operation.Undoing && r.State == operation.Running:
			w.t.Errorf("it runs again: %+v", r)
		case r.Owner != before.Owner && (r.Turn == before.Turn || before.Step != "" && r.Step != before.Step):
			w.t.Errorf("taken over without a turn of its own: %+v\nafter %+v", r, before)
		}
		if r.State.Ended() {
			continue
		}
		name := string(r.State) + " " + r.Step
		if steps[r.Turn] != "" && steps[r.Turn] != name {
			w.t.Errorf("turn %d is of %s and %s", r.Turn, steps[r.Turn], name)
		}
		steps[r.Turn] = name
	}
	return steps
}

func (w *world) checkShelf(state operation.State, last operation.Record, steps map[int64]string) {
	w.t.Helper()
	var got shelved
	if err := w.shelf.with(func(now *shelved) error { got = *now; return nil }); err != nil {
		w.t.Fatal(err)
	}
	want := 0
	if state == operation.Done || slices.Contains(last.Left, "fill") {
		want = len(got.Books)
	}
	if state == operation.Done {
		want = bookCount
	}
	if len(got.Books) != want {
		w.t.Errorf("%s with %d books, want %d: %q", state, len(got.Books), want, got.Log)
	}
	seen := map[string]int{}
	for _, line := range got.Log {
		var turn int64
		var what string
		if n, _ := fmt.Sscan(line, &turn, &what); n < 2 {
			continue // refused
		}
		step := "running fill"
		if what == "clear" {
			step = "undoing fill"
		}
		if steps[turn] != step {
			w.t.Errorf("%q is of turn %d, which is recorded as %q", line, turn, steps[turn])
		}
		if seen[what]++; what != "clear" && seen[what] > 1 {
			w.t.Errorf("%s was put there twice: %q", what, got.Log)
		}
	}
}

// checkKeys: what is written in the transaction with a record was written once.
func (w *world) checkKeys(ending operation.State) {
	w.t.Helper()
	answer, err := w.home.Store.Client.Get(w.t.Context(), "/test/"+w.op+"/", clientv3.WithPrefix())
	if err != nil {
		w.t.Fatal(err)
	}
	count := map[string]int{}
	for _, kv := range answer.Kvs {
		parts := strings.Split(string(kv.Key), "/")
		count[parts[3]]++
	}
	if count["place"] > 1 || count["entry"] > 1 {
		w.t.Errorf("taken twice: %v", count)
	}
	if ending == operation.Done {
		if count["reserved"] != 1 || count["listed"] != 1 || count["place"] != 1 || count["entry"] != 1 {
			w.t.Errorf("done with %v", count)
		}
	} else if count["reserved"] != 0 || count["listed"] != 0 {
		w.t.Errorf("undone with %v", count)
	}
	// One that came after the end is removed later.
	wish, err := state.Get[operation.Wish](w.t.Context(), w.home.Store, state.OperationCancel(w.op))
	if errors.Is(err, state.ErrNotFound) {
		return
	}
	record, recordErr := state.Get[operation.Record](w.t.Context(), w.home.Store, state.Operation(w.op))
	if err := errors.Join(err, recordErr); err != nil {
		w.t.Fatal(err)
	}
	if wish.Revision < record.Revision {
		w.t.Error("the wish to cancel it is still there")
	}
}

// points has an operation carried out by one that nothing happens to, and answers how many points
// it passes.
func points(t *testing.T, h *hometest.Home, base order, ending operation.State) []int {
	t.Helper()
	w := newWorld(t, h, base)
	p := w.start(nil)
	w.wait(p)
	w.check(ending)
	var all []int
	for n := range strings.Count(p.out.String(), "point ") {
		all = append(all, n+1)
	}
	if len(all) < 10 {
		t.Fatalf("only %d points:\n%s", len(all), p.out.String())
	}
	t.Logf("%d points", len(all))
	return all
}

// bothEndings tests an operation that goes well, and one that fails.
func bothEndings(t *testing.T, test func(*testing.T, order, operation.State)) {
	t.Helper()
	for name, c := range map[string]struct {
		base   order
		ending operation.State
	}{
		"goes well": {order{}, operation.Done}, "fails": {order{Fails: "list"}, operation.Failed},
	} {
		t.Run(name, func(t *testing.T) { test(t, c.base, c.ending) })
	}
}

// Whoever carries an operation out is killed before and after every record and effect, and another
// one takes over.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	bothEndings(t, func(t *testing.T, base order, ending operation.State) {
		for _, n := range depth.Some(t, 8, points(t, h, base, ending)) {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, h, base)
				first := w.start(func(o *order) { o.KillAt = n })
				if !w.wait(first) {
					t.Fatalf("it was not killed:\n%s", first.out.String())
				}
				w.wait(w.start(nil))
				w.check(ending)
				if t.Failed() {
					t.Log(first.out.String())
				}
			})
		}
	})
}

// Three in a row are killed, each a few points after it took over.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	for n := 2; n <= 6; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, h, order{})
			deaths := 0
			for w.wait(w.start(func(o *order) { o.KillAt = n + deaths })) {
				if deaths++; deaths > 50 {
					t.Fatal("nobody gets on")
				}
			}
			w.check(operation.Done)
			t.Logf("%d deaths", deaths)
		})
	}
}

// It is cancelled at every point, and whoever sees that is killed soon after.
func TestCancelledAtEveryPoint(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	all := points(t, h, order{}, operation.Done)
	count := len(all)
	for _, n := range depth.Some(t, 8, all) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, h, order{})
			w.wait(w.start(func(o *order) { o.WishAt, o.KillAt = n, n+1+n%4 }))
			w.wait(w.start(nil))
			all := w.history()
			last := all[len(all)-1]
			if last.State != operation.Cancelled && last.State != operation.Done {
				t.Fatalf("it ended %+v", last)
			}
			if last.State == operation.Done && n < count-5 {
				t.Errorf("cancelled at point %d of %d, and done", n, count)
			}
			w.check(last.State)
		})
	}
}

// One that leads is stopped at every point, another one finishes the operation, and the first
// goes on: nothing that it does then is of any effect.
func TestStoppedAtEveryPoint(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	bothEndings(t, func(t *testing.T, base order, ending operation.State) {
		all := points(t, h, base, ending)
		for _, n := range depth.Some(t, 5, all[:len(all)-1]) {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, h, base)
				first := w.start(func(o *order) { o.StopAt = n })
				testkit.Eventually(t, 60*time.Second, func() error { return stopped(first.cmd.Process.Pid) })
				w.wait(w.start(nil))
				w.check(ending)
				records := len(w.history())
				if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				w.wait(first)
				w.check(ending)
				if after := len(w.history()); after != records {
					t.Errorf("%d records, and %d after the first went on:\n%s", records, after, first.out.String())
				}
			})
		}
	})
}

// stopped: a process is in state T.
func stopped(pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	if !strings.HasPrefix(rest, "T") {
		return fmt.Errorf("process %d is in state %.1s", pid, rest)
	}
	return nil
}
