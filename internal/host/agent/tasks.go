package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// writeAgain is the pause before a write that etcd did not take is tried again.
const writeAgain = 200 * time.Millisecond

// tasks does what the control plane asks for, each task once.
type tasks struct {
	agent *Agent

	mu    sync.Mutex
	begun map[string]bool // those that this agent began, guarded by mu
}

func newTasks(a *Agent) *tasks { return &tasks{agent: a, begun: map[string]bool{}} }

// follow begins tasks as they come, until ctx ends.
func (t *tasks) follow(ctx context.Context) error {
	var claims sync.WaitGroup
	defer claims.Wait()
	prefix := state.TaskPrefix(t.agent.Name)
	cache := state.NewCache(t.agent.Store.Client, t.agent.Log, prefix)
	cache.OnChange(func(keys []string) {
		for _, key := range keys {
			task, err := state.Load[member.Task](cache, key)
			if err != nil {
				t.forget(state.Tail(key, prefix))
				continue
			}
			if t.note(task.Value.ID) {
				claims.Go(func() { t.begin(ctx, task.Value) })
			}
		}
	})
	return cache.Run(ctx)
}

// begin claims a task: it writes that the task began, in a transaction that fails if it began
// before. If an agent died in the middle of a task, the next agent does not do it again; it
// finds out how the task ended. begin tries until etcd answers, or the task is gone.
func (t *tasks) begin(ctx context.Context, task member.Task) {
	result := member.Result{ID: task.ID, Member: task.Member, Began: time.Now().UTC()}
	r := t.agent.Member(ctx, task.Member)
	for t.doing(task.ID) {
		began, err := t.claim(ctx, result)
		switch {
		case err != nil:
			t.agent.Log.Warn("begin task", "task", task.ID, "error", err)
		case began.Began.Equal(result.Began):
			r.Do(func(ctx context.Context) { r.perform(ctx, task, result) })
			return
		default:
			if !began.Done && !began.Failed {
				r.Do(func(ctx context.Context) { r.conclude(ctx, task, began) })
			}
			return
		}
		if !pace.Sleep(ctx, writeAgain) {
			return
		}
	}
}

// claim writes that a task began, and answers with what is written: by this call, by
// one whose answer was lost, or by an earlier agent.
func (t *tasks) claim(ctx context.Context, result member.Result) (member.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, EtcdTimeout)
	defer cancel()
	_, err := t.agent.Store.Commit(ctx, state.Swap(state.Result(result.ID), 0, result))
	if !errors.Is(err, state.ErrConflict) {
		return result, err
	}
	old, err := state.Get[member.Result](ctx, t.agent.Store, state.Result(result.ID))
	return old.Value, err
}

// doing reports whether this very agent deals with a task.
func (t *tasks) doing(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun[id]
}

func (t *tasks) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.begun, id)
}

// note answers false when this agent deals with the task already.
func (t *tasks) note(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.begun[id]
	t.begun[id] = true
	return !known
}

// ErrTask says that a task was not done.
var ErrTask = errors.New("not done")

// perform has the workload do a task.
func (m *Member) perform(ctx context.Context, task member.Task, result member.Result) {
	if err := m.agent.planes.Newer(); err != nil {
		m.finish(ctx, result, fmt.Errorf("%w: %w", ErrTask, err))
		return
	}
	limit := task.Limit(time.Now())
	if limit == 0 {
		m.finish(ctx, result, fmt.Errorf("its deadline was %s, which is long past by the clock of this host: %w",
			task.Deadline.UTC().Format(time.RFC3339), ErrTask))
		return
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	m.workload.Perform(limited, task, func(err error) {
		defer cancel()
		m.finish(ctx, result, err)
	})
}

// conclude finds out how a task ended that an earlier agent began.
func (m *Member) conclude(ctx context.Context, task member.Task, result member.Result) {
	done, err := m.workload.Performed(ctx, task)
	if err != nil {
		m.done.Go(func() {
			if pace.Sleep(ctx, writeAgain) {
				m.Do(func(ctx context.Context) { m.conclude(ctx, task, result) })
			}
		})
		return
	}
	if done {
		m.finish(ctx, result, nil)
		return
	}
	m.finish(ctx, result, fmt.Errorf("the agent was restarted in the middle: %w", ErrTask))
}

// finish tells how a task ended.
func (m *Member) finish(ctx context.Context, result member.Result, err error) {
	result.Ended = time.Now().UTC()
	result.Done, result.Failed = err == nil, err != nil
	if err != nil {
		result.Detail = err.Error()
	}
	m.Log.Info("task ended", "task", result.ID, "done", result.Done, "detail", result.Detail)
	m.Tell(ctx, state.Put(state.Result(result.ID), result))
}
