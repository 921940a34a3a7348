package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// yard is a host that does jobs, in memory: what is asked is told by the keys that are written.
type yard struct {
	asked  int
	report JobReport
	fails  int // so many times
}

func (y *yard) Ask(job Job) []state.Op {
	y.asked++
	y.report = JobReport{State: InProgress, Progress: operation.Progress{Of: 10, Unit: "MiB"}}
	return []state.Op{state.Put("job/"+job.Name, job.Turn)}
}

func (y *yard) Forget(_, name string) []state.Op {
	y.report = JobReport{}
	return []state.Op{state.Delete("job/" + name)}
}

func (y *yard) Look(context.Context, string, string) (JobReport, error) {
	now := y.report
	if now.State == InProgress {
		y.report.Progress.Done += 5
		if y.report.Progress.Done > 10 {
			y.report.State, y.report.Result = Succeeded, json.RawMessage(`{"files":3}`)
		}
		if y.asked <= y.fails {
			y.report.State, y.report.Detail = Lost, fmt.Sprintf("no room, %d", y.asked)
		}
	}
	return now, nil
}

func TestAwait(t *testing.T) {
	for name, c := range map[string]struct {
		fails, tries int
		want         operation.State
		asked        int
		reason       string
	}{
		"goes well":        {0, 3, operation.Done, 1, ""},
		"well at the end":  {2, 3, operation.Done, 3, ""},
		"as long as need":  {7, 0, operation.Done, 8, ""},
		"fails every time": {9, 3, operation.Failed, 3, "copy on zone-a: the host could not: no room, 3"},
	} {
		synctest.Test(t, func(t *testing.T) {
			y := &yard{fails: c.fails}
			d := &Definition{Kind: operation.Kind{Name: "copying", Within: time.Hour}, First: "copy", Steps: map[string]Step{
				"copy": {
					Do: func(ctx context.Context, run *Run) (Outcome, error) {
						return Await(ctx, run, y, Job{Host: "zone-a", Name: run.Name(), Kind: "copy", Tries: c.tries}, func(result json.RawMessage) (Outcome, error) {
							run.Note("result", string(result))
							return End(), nil
						})
					},
					Undo: func(_ context.Context, run *Run) (Outcome, error) {
						return End().With(y.Forget("zone-a", run.Name())...), nil
					},
				},
			}}
			m := begin(t, d)
			m.driver(d, "a").run(t.Context())
			if m.record.State != c.want || y.asked != c.asked || m.record.Reason != c.reason {
				t.Errorf("%s: asked %d times:\n%s", name, y.asked, m.text())
			}
			if c.want == operation.Done && (m.record.Notes["result"] != `{"files":3}` || y.report.State != NotAsked) {
				t.Errorf("%s: the result %q, and the job is %d afterwards", name, m.record.Notes["result"], y.report.State)
			}
			if c.fails == 2 && !slices.ContainsFunc(m.history, func(r operation.Record) bool { return r.Trouble == "copy on zone-a: the host could not: no room, 1" }) {
				t.Errorf("%s: nobody is told why:\n%s", name, m.text())
			}
		})
	}
}
