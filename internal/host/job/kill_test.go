package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit/hometest"
)

// points are where an agent may die, with what a job that is begun anew there does in all.
var points = []struct{ at, did string }{
	{"seen", "run, resume false; deed"},
	{"claimed", "run, resume true; deed"},
	{"noted", "run, resume true; deed"},
	{"running", "run, resume false; run, resume true; deed"},
	{"after the deed", "run, resume false; deed; run, resume true"},
	{"ran", "run, resume false; deed; run, resume true"},
	{"ended", "run, resume false; deed"},
	{"reported", "run, resume false; deed"},
}

// An agent that is killed is only a pause, wherever it is: the deed is done once, and its result
// comes.
func TestKilledAtEveryPoint(t *testing.T) {
	h := hometest.New(t)
	for _, p := range points {
		t.Run(p.at, func(t *testing.T) {
			w := newWorld(t, h)
			first := w.start(func(o *order) { o.KillAt = p.at })
			name := w.ask("deed", "a", 1)
			first.died()
			w.start(nil)
			got := w.report(name, ends)
			if did := w.journal("a"); did != p.did || got.State != member.JobDone || len(got.Result) == 0 {
				t.Errorf("it did: %s; report %+v", did, got)
			}
			w.cancel(name)
			w.forgotten()
		})
	}
}

// An agent that is killed while it forgets a job goes on forgetting.
func TestKilledWhileItForgets(t *testing.T) {
	w := newWorld(t, hometest.New(t))
	first := w.start(func(o *order) { o.KillAt = "cleared" })
	name := w.ask("deed", "a", 1)
	w.report(name, ends)
	w.cancel(name)
	first.died()
	w.start(nil)
	w.forgotten()
}

// An agent that stood still reports nothing of a job that was forgotten meanwhile, whether it was
// asked for elsewhere or here once more.
func TestPausedAtEveryPoint(t *testing.T) {
	h := hometest.New(t)
	for _, p := range points {
		t.Run(p.at, func(t *testing.T) {
			w, elsewhere := newWorld(t, h), newWorld(t, h)
			elsewhere.order.World = w.order.World
			first := w.start(func(o *order) { o.StopAt = p.at })
			elsewhere.start(nil)
			name := w.ask("deed", "a", 1)
			first.stopped()
			w.cancel(name)
			gone := w.commit(state.Put("/test/gone", true))
			there := elsewhere.ask("deed", "b", 1)
			elsewhere.report(there, ends)
			again := w.ask("deed", "a", 2)
			asked := w.revision(state.Job(w.order.Host, again))
			first.goOn()
			got := w.report(again, func(r member.JobReport) error {
				if r.Asked != asked {
					return fmt.Errorf("report %+v", r)
				}
				return ends(r)
			})
			if got.State != member.JobDone {
				t.Errorf("report %+v", got)
			}
			for _, r := range w.reportsSince(again, gone) {
				if r.Asked != asked {
					t.Errorf("it reported over it: %+v", r)
				}
			}
			if n := strings.Count(w.journal("a"), "deed"); n != 1 {
				t.Errorf("it did: %s", w.journal("a"))
			}
		})
	}
}

func (w *world) revision(key string) int64 {
	w.Helper()
	answer, err := w.home.Store.Client.Get(w.Context(), key)
	if err != nil || len(answer.Kvs) != 1 {
		w.Fatalf("%v, %v", answer, err)
	}
	return answer.Kvs[0].ModRevision
}

// reportsSince are all reports that were written of a job since then.
func (w *world) reportsSince(name string, revision int64) (all []member.JobReport) {
	w.Helper()
	key := state.JobReport(w.order.Host, name)
	last := w.revision(key)
	for answer := range w.home.Store.Client.Watch(w.Context(), key, clientv3.WithRev(revision)) {
		for _, e := range answer.Events {
			var r member.JobReport
			if e.Type == clientv3.EventTypePut && json.Unmarshal(e.Kv.Value, &r) == nil {
				all = append(all, r)
			}
			if e.Kv.ModRevision >= last {
				return all
			}
		}
	}
	return slices.Clip(all)
}
