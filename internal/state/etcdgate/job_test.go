package etcdgate

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// A host does its jobs with the rights that its agent has at a door: it claims and reports them,
// and removes its reports when they are gone.
func TestJobsThroughADoor(t *testing.T) {
	d := newDoorway(t)
	client := d.as("agent:h1", d.urls...)
	procs, err := proc.Open(proc.Config{Parent: fmt.Sprintf("howdah-test-door-job-%d", os.Getpid()), StateDir: t.TempDir()})
	d.must(err)
	running := make(chan struct{})
	jobs, err := job.New(job.Config{
		Host: "h1", Dir: filepath.Join(t.TempDir(), "jobs"), Procs: procs, Refuse: func() error { return nil }, Discard: os.RemoveAll,
		Log: slog.New(slog.DiscardHandler),
		Kinds: []job.Kind{
			{Name: "quick", Run: func(_ context.Context, call job.Call) (any, error) { call.Progress(1, 1, "bytes"); return "done", nil }},
			{Name: "slow", Run: func(ctx context.Context, _ job.Call) (any, error) {
				close(running)
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}},
		},
	})
	d.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = jobs.Run(ctx, &state.Store{Client: client}) })
	t.Cleanup(func() { cancel(); done.Wait() })

	ask := func(kind, name string) {
		d.put(state.Swap(state.Job("h1", name), 0, member.Job{Name: name, Host: "h1", Kind: kind, Turn: 1, At: time.Now()}))
	}
	ask("quick", "copy-1/fill")
	ask("slow", "copy-2/fill")
	testkit.Eventually(t, 20*time.Second, func() error {
		r, err := state.Get[member.JobReport](t.Context(), d.home.Store, state.JobReport("h1", "copy-1/fill"))
		if err != nil || r.Value.State != member.JobDone || string(r.Value.Result) != `"done"` {
			return fmt.Errorf("%+v, %w", r.Value, err)
		}
		return nil
	})
	select {
	case <-running:
	case <-time.After(20 * time.Second):
		t.Fatal("the second one was not begun")
	}
	d.put(state.Delete(state.Job("h1", "copy-1/fill")), state.Delete(state.Job("h1", "copy-2/fill")))
	testkit.Eventually(t, 20*time.Second, func() error {
		left, err := state.List[member.JobReport](t.Context(), d.home.Store, state.JobReportRoot)
		if err != nil || len(left) > 0 {
			return fmt.Errorf("reports %+v, %w", left, err)
		}
		return nil
	})
}
