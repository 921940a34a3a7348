package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

var about = operation.About{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Type: event.Instance, Name: "orders", Database: "db-1"}

// memory is a ledger that is not there any more when the test ends. Its lines tell what was
// written, as of whom, and when.
type memory struct {
	mu       sync.Mutex
	record   operation.Record
	revision int64
	wished   *operation.Wish
	deposed  string // an owner that leads no more
	broken   error  // what every write answers
	raced    int    // how many writes of a step others come in the way of
	began    time.Time
	lines    []string
	history  []operation.Record
	ops      int
	forgot   int // how often jobs were removed
}

func (m *memory) read(context.Context, string) (operation.Record, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revision == 0 {
		return operation.Record{}, 0, state.ErrNotFound
	}
	return m.record, m.revision, nil
}

func (m *memory) write(_ context.Context, r operation.Record, revision int64, ops ...state.Op) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.broken != nil:
		return 0, m.broken
	case revision != m.revision || m.deposed != "" && r.Owner == m.deposed:
		return 0, state.ErrConflict
	case m.raced > 0 && len(ops) > 0:
		m.raced--
		return 0, state.ErrConflict
	}
	m.revision++
	m.record = r
	m.ops += len(ops)
	m.history = append(m.history, r)
	m.lines = append(m.lines, m.line(r, len(ops)))
	return m.revision, nil
}

func (m *memory) line(r operation.Record, ops int) string {
	text := fmt.Sprintf("%8s  %-9s %-8s turn %d %s", time.Since(m.began).Round(time.Millisecond), r.State, r.Step, r.Turn, r.Owner)
	if !r.Next.IsZero() {
		text += fmt.Sprintf("  next %s", r.Next.Sub(m.began).Round(time.Millisecond))
	}
	for _, part := range []string{r.Trouble, r.Reason, strings.Join(r.Left, ",")} {
		if part != "" {
			text += "  " + part
		}
	}
	if r.Told {
		text += "  late"
	}
	if ops > 0 {
		text += fmt.Sprintf("  +%d", ops)
	}
	if r.Progress.Unit != "" {
		text += fmt.Sprintf("  %d/%d %s", r.Progress.Done, r.Progress.Of, r.Progress.Unit)
	}
	return text
}

func (m *memory) prove(_ context.Context, _ string, revision int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision != m.revision {
		return ErrOvertaken
	}
	return nil
}

func (m *memory) forget(context.Context, string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgot++
	return nil
}

func (m *memory) wish(string) (operation.Wish, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wished == nil {
		return operation.Wish{}, false
	}
	return *m.wished, true
}

// begin makes a memory with one operation.
func begin(t *testing.T, d *Definition) *memory {
	t.Helper()
	r, err := operation.New("op-1", d.Kind, about, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &memory{record: r, revision: 1, began: time.Now()}
}

func (m *memory) driver(d *Definition, owner string) *driver {
	return &driver{id: "op-1", def: d, owner: owner, books: m, wake: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler)}
}

// trail has every call of a step in it.
type trail struct {
	mu    sync.Mutex
	calls []string
}

func (tr *trail) add(run *Run) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	name := run.Record.Step
	if run.Record.State == operation.Undoing {
		name = "undo " + name
	}
	tr.calls = append(tr.calls, name)
	n := 0
	for _, c := range tr.calls {
		if c == name {
			n++
		}
	}
	return n
}

var errPasses = errors.New("it rains")

// errand is a kind with everything in it: a failure that passes, a nap, progress, notes.
func errand(tr *trail) *Definition {
	undo := func(_ context.Context, run *Run) (Outcome, error) {
		if tr.add(run) == 1 && run.Record.Step == "pack" {
			return Outcome{}, errPasses
		}
		return End(), nil
	}
	return &Definition{
		Kind: operation.Kind{Name: "errand", Within: time.Hour}, First: "pack",
		Steps: map[string]Step{
			"pack": {Undo: undo, Do: func(_ context.Context, run *Run) (Outcome, error) {
				if tr.add(run) == 1 {
					return Outcome{}, errPasses
				}
				run.Note("bag", "packed")
				return Next("walk"), nil
			}},
			"walk": {Do: func(_ context.Context, run *Run) (Outcome, error) {
				n := tr.add(run)
				run.Progress(int64(n), 3, "miles")
				if n < 3 {
					return Nap(10 * time.Minute), nil
				}
				return Next("hand"), nil
			}},
			"hand": {Undo: undo, Tries: 2, Do: func(_ context.Context, run *Run) (Outcome, error) {
				tr.add(run)
				if run.Record.Notes["bag"] != "packed" {
					return Outcome{}, Final(errors.New("no bag"))
				}
				return End().With(state.Put("x", 1)), nil
			}},
		},
	}
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

func (m *memory) text() string { return strings.Join(m.lines, "\n") }

func TestAnOperationGoesWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trail{}
		m := begin(t, errand(tr))
		m.driver(errand(tr), "a").run(t.Context())
		want(t, "records", m.text(), `
      0s  running   pack     turn 1 a
      0s  running   pack     turn 1 a  next 1s  it rains
      1s  running   walk     turn 2 a
      1s  running   walk     turn 2 a  next 10m1s  1/3 miles
   10m1s  running   walk     turn 2 a  next 20m1s  2/3 miles
   20m1s  running   hand     turn 3 a  3/3 miles
   20m1s  done               turn 3 a  +1  3/3 miles`[1:])
		if m.record.Notes["bag"] != "packed" || m.record.Ended.IsZero() {
			t.Errorf("%+v", m.record)
		}
	})
}

func TestAnOperationFailsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trail{}
		d := errand(tr)
		hand := d.Steps["hand"]
		hand.Do = func(context.Context, *Run) (Outcome, error) { return Outcome{}, errors.New("nobody\x1b[0m is in") }
		d.Steps["hand"] = hand
		m := begin(t, d)
		m.driver(d, "a").run(t.Context())
		got := m.lines[len(m.lines)-5:]
		want(t, "records", strings.Join(got, "\n"), `
   20m1s  running   hand     turn 3 a  next 20m2s  nobody[0m is in  3/3 miles
   20m2s  undoing   hand     turn 4 a  nobody[0m is in  3/3 miles
   20m2s  undoing   pack     turn 5 a  nobody[0m is in  3/3 miles
   20m2s  undoing   pack     turn 5 a  next 20m3s  it rains  nobody[0m is in  3/3 miles
   20m3s  failed             turn 5 a  nobody[0m is in  3/3 miles`[1:])
	})
}

// An undo that cannot succeed leaves what it should remove, says so, and the others are done.
func TestAnUndoThatCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trail{}
		d := errand(tr)
		d.Steps["hand"] = Step{
			Do:   func(context.Context, *Run) (Outcome, error) { return Outcome{}, Final(errors.New("no")) },
			Undo: func(context.Context, *Run) (Outcome, error) { return Outcome{}, Final(errors.New("its host is gone")) },
		}
		m := begin(t, d)
		m.driver(d, "a").run(t.Context())
		if r := m.record; r.State != operation.Failed || !slices.Equal(r.Left, []string{"hand"}) || r.Reason != "no" || !slices.Contains(tr.calls, "undo pack") {
			t.Errorf("%+v after %q", r, tr.calls)
		}
	})
}

// Whenever it is cancelled, whatever has begun is undone, the last first, and nothing else.
func TestCancelledAtAnyTime(t *testing.T) {
	for after := time.Duration(0); after < 25*time.Minute; after += 30 * time.Second {
		synctest.Test(t, func(t *testing.T) {
			tr := &trail{}
			d := errand(tr)
			m := begin(t, d)
			drv := m.driver(d, "a")
			go func() {
				time.Sleep(after)
				m.mu.Lock()
				m.wished = &operation.Wish{By: "KEY"}
				m.mu.Unlock()
				drv.poke()
			}()
			began := time.Now()
			drv.run(t.Context())
			r := m.record
			ended := r.Ended.Sub(began)
			switch {
			case after > 20*time.Minute+time.Second:
				if r.State != operation.Done {
					t.Errorf("after %s: %s", after, m.text())
				}
			case r.State != operation.Cancelled || r.Reason != "cancelled by KEY" || r.Step != "" || len(r.Entered) > 0 || ended > after+2*time.Second:
				t.Errorf("after %s:\n%s", after, m.text())
			case slices.Contains(tr.calls, "pack") != slices.Contains(tr.calls, "undo pack") || slices.Contains(tr.calls, "undo walk"):
				t.Errorf("after %s: calls %q", after, tr.calls)
			}
			time.Sleep(time.Hour)
		})
	}
}

// What is cancelled before anybody has begun it was begun by somebody, who may have made something
// with it: its first step removes that.
func TestCancelledBeforeItsFirstStep(t *testing.T) {
	begun := operation.Record{State: operation.Running}
	d := &Definition{First: "choose", Steps: map[string]Step{"choose": {Undo: func(context.Context, *Run) (Outcome, error) { return End(), nil }}}}
	r := d.cancel(begun, operation.Wish{By: "KEY"}, time.Now())
	if r.State != operation.Undoing || r.Step != "choose" {
		t.Errorf("%+v", r)
	}
	d.Steps["choose"] = Step{}
	if r := d.cancel(begun, operation.Wish{By: "KEY"}, time.Now()); r.State != operation.Cancelled {
		t.Errorf("with nothing to undo: %+v", r)
	}
}

// A cancelled operation ends a call that is under way.
func TestCancelledDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trail{}
		d := errand(tr)
		d.Steps["pack"] = Step{Within: time.Hour, Undo: d.Steps["pack"].Undo, Do: func(ctx context.Context, _ *Run) (Outcome, error) {
			<-ctx.Done()
			return Outcome{}, ctx.Err()
		}}
		m := begin(t, d)
		drv := m.driver(d, "a")
		go func() {
			time.Sleep(time.Minute)
			m.mu.Lock()
			m.wished = &operation.Wish{By: "KEY"}
			m.mu.Unlock()
			drv.poke()
		}()
		drv.run(t.Context())
		if r := m.record; r.State != operation.Cancelled || r.Ended.Sub(m.began) > 2*time.Minute || r.Trouble != "" {
			t.Errorf("%s", m.text())
		}
	})
}

// What cannot be undone can be abandoned, also in the middle, and also by one that does not
// know the kind.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trail{}
		d := errand(tr)
		d.Steps["pack"] = Step{Tries: 1, Do: d.Steps["pack"].Do, Undo: func(context.Context, *Run) (Outcome, error) { return Outcome{}, errPasses }}
		m := begin(t, d)
		drv := m.driver(d, "a")
		go func() {
			time.Sleep(30 * time.Minute)
			m.mu.Lock()
			m.wished = &operation.Wish{By: "KEY", Abandon: true}
			m.mu.Unlock()
			drv.poke()
		}()
		drv.run(t.Context())
		if r := m.record; r.State != operation.Failed || !slices.Equal(r.Left, []string{"pack"}) || r.Reason != errPasses.Error() {
			t.Errorf("%s", m.text())
		}
		if n := len(m.history); n > 20 {
			t.Errorf("%d records in half an hour of failures", n)
		}

		unknown := begin(t, d)
		unknown.wished = &operation.Wish{By: "KEY", Abandon: true}
		unknown.driver(nil, "a").run(t.Context())
		if unknown.record.State != operation.Cancelled {
			t.Errorf("%s", unknown.text())
		}
	})
}

// The alarm is raised once, also while a call goes on, and the operation goes on.
func TestTheDeadlineIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Definition{Kind: operation.Kind{Name: "slow", Within: time.Minute}, First: "sleep", Steps: map[string]Step{
			"sleep": {Within: time.Hour, Do: func(ctx context.Context, run *Run) (Outcome, error) {
				time.Sleep(10 * time.Minute)
				return Next("nap"), nil
			}},
			"nap": {Do: func(_ context.Context, run *Run) (Outcome, error) {
				if time.Since(run.Record.Began) < 20*time.Minute {
					return Nap(5 * time.Minute), nil
				}
				return End(), nil
			}},
		}}
		m := begin(t, d)
		m.driver(d, "a").run(t.Context())
		want(t, "records", m.text(), `
      0s  running   sleep    turn 1 a
1m0.001s  running   sleep    turn 1 a  late  +1
   10m0s  running   nap      turn 2 a  late
   10m0s  running   nap      turn 2 a  next 15m0s  late
   15m0s  running   nap      turn 2 a  next 20m0s  late
   20m0s  done               turn 2 a  late`[1:])
	})
}

// One of a kind that is not known is left alone, and its alarm is raised all the same.
func TestOfAnUnknownKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := begin(t, errand(&trail{}))
		m.wished = &operation.Wish{By: "KEY"}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		m.driver(nil, "a").run(ctx)
		if len(m.history) != 1 || !m.record.Told || m.record.State != operation.Running {
			t.Errorf("%s", m.text())
		}
	})
}

// A step that panics, that runs into its time, or that wants to write too much, takes nobody
// with it.
func TestBadSteps(t *testing.T) {
	for name, c := range map[string]struct {
		do   Func
		want string
	}{
		"panics":  {func(context.Context, *Run) (Outcome, error) { panic("oh") }, "step only panicked: oh"},
		"hangs":   {func(ctx context.Context, _ *Run) (Outcome, error) { <-ctx.Done(); return Outcome{}, ctx.Err() }, "deadline exceeded"},
		"nowhere": {func(context.Context, *Run) (Outcome, error) { return Next("nowhere"), nil }, "cannot be followed"},
		"large notes": {func(_ context.Context, r *Run) (Outcome, error) {
			r.Note("x", strings.Repeat("y", 20<<10))
			return End(), nil
		}, "may hold"},
		"large write": {func(context.Context, *Run) (Outcome, error) {
			return End().With(state.Put("x", strings.Repeat("y", 1<<20))), nil
		}, "at once"},
		"many writes": {func(context.Context, *Run) (Outcome, error) {
			return End().With(slices.Repeat([]state.Op{state.Put("x", 1)}, 200)...), nil
		}, "at once"},
		"no arguments": {func(_ context.Context, r *Run) (Outcome, error) {
			var in struct{ A int }
			return End(), r.Args(&in)
		}, "read the arguments"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &Definition{Kind: operation.Kind{Name: "bad", Within: time.Minute}, First: "only", Steps: map[string]Step{"only": {Do: c.do, Tries: 3}}}
			m := begin(t, d)
			m.driver(d, "a").run(t.Context())
			if r := m.record; r.State != operation.Failed || !strings.Contains(r.Reason, c.want) || m.ops > 1 || r.Fits(operation.MaxSize) != nil {
				t.Errorf("%s:\n%s", name, m.text())
			}
		})
	}
}

// Others change a few times what a step wanted to change: it is called again, and that is none of
// its tries. If they always do, it fails.
func TestOthersComeInTheWayOfAWrite(t *testing.T) {
	for raced, want := range map[int]operation.State{mostRaces: operation.Done, 1000: operation.Failed} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			d := &Definition{Kind: operation.Kind{Name: "raced", Within: time.Hour}, First: "only", Steps: map[string]Step{
				"only": {Tries: 2, Do: func(context.Context, *Run) (Outcome, error) {
					calls++
					return End().With(state.Put("x", 1)), nil
				}},
			}}
			m := begin(t, d)
			m.raced = raced
			m.driver(d, "a").run(t.Context())
			most := mostRaces + 2
			if want == operation.Done {
				most = mostRaces + 1
			}
			if r := m.record; r.State != want || calls != most {
				t.Errorf("%d races: %d calls\n%s", raced, calls, m.text())
			}
		})
	}
}

// While nothing can be recorded nothing begins, and what was taken is not called without end.
func TestWhileEtcdTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trail{}
		d := errand(tr)
		m := begin(t, d)
		m.broken = errors.New("etcdserver: mvcc: database space exceeded")
		drv := m.driver(d, "a")
		go func() {
			time.Sleep(time.Hour / 2)
			tr.mu.Lock()
			if len(tr.calls) > 0 {
				t.Errorf("%q were called", tr.calls)
			}
			tr.mu.Unlock()
			m.mu.Lock()
			m.broken = nil
			m.mu.Unlock()
			time.Sleep(time.Minute)
			m.mu.Lock()
			m.broken = errors.New("etcdserver: request timed out")
			m.mu.Unlock()
			time.Sleep(time.Hour)
			m.mu.Lock()
			m.broken = nil
			m.mu.Unlock()
		}()
		drv.run(t.Context())
		if n := len(tr.calls); m.record.State != operation.Done || n > 200 {
			t.Errorf("%d calls:\n%s", n, m.text())
		}
	})
}

// One that was paused, and goes on after others have finished the operation, changes nothing.
func TestAPausedOneChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trail{}
		held, free := make(chan struct{}), make(chan struct{})
		slow := errand(tr)
		slow.Steps["pack"] = Step{Do: func(context.Context, *Run) (Outcome, error) {
			close(held)
			<-free
			return Next("walk").With(state.Put("x", 1)), nil
		}}
		m := begin(t, slow)
		var first sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		first.Go(func() { m.driver(slow, "a").run(ctx) })
		<-held
		m.mu.Lock()
		m.deposed = "a"
		m.mu.Unlock()
		d := errand(tr)
		m.driver(d, "b").run(t.Context())
		lines, ops := len(m.lines), m.ops
		close(free)
		time.Sleep(time.Minute)
		cancel()
		first.Wait()
		if len(m.lines) != lines || m.ops != ops || m.record.Owner != "b" || m.record.State != operation.Done {
			t.Errorf("%s", m.text())
		}
	})
}

// Progress is recorded while a call goes on, not at every word, and never goes back.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Definition{Kind: operation.Kind{Name: "count", Within: time.Hour}, First: "count", Steps: map[string]Step{
			"count": {Within: time.Hour, Tries: 2, Do: func(ctx context.Context, run *Run) (Outcome, error) {
				for n := range int64(1000) {
					if err := run.Report(ctx, n, 1000, "files"); err != nil {
						return Outcome{}, err
					}
					time.Sleep(100 * time.Millisecond)
					if n == 500 && run.Record.Failures == 0 {
						return Outcome{}, errPasses
					}
				}
				return End(), nil
			}},
		}}
		m := begin(t, d)
		m.driver(d, "a").run(t.Context())
		last := int64(0)
		for _, r := range m.history {
			if r.Progress.Done < last {
				t.Errorf("%d after %d", r.Progress.Done, last)
			}
			last = r.Progress.Done
		}
		if m.record.State != operation.Done || last != 999 || len(m.history) > 160 || len(m.history) < 100 {
			t.Errorf("%d records, the last %+v", len(m.history), m.record)
		}
	})
}
