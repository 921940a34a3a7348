package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

func TestEventsOfARecovery(t *testing.T) {
	for multiAZ, want := range map[bool][2]string{false: {"0020", "0021"}, true: {"0052", "0053"}} {
		b := made(t, multiAZ)
		dead, alive := func(r *member.Report) { r.Ready = false }, func(r *member.Report) { r.Ready = true }
		b.problem("a", "m1", member.None, dead)
		b.expect("just now")
		b.later(time.Second)
		b.problem("a", "m1", member.None, alive)
		b.expect("again before anyone was told")
		b.problem("a", "m1", member.None, dead)
		b.expect("dead again")
		b.later(2 * time.Second)
		b.expect("for two seconds", want[0])
		b.later(time.Minute)
		b.expect("for a minute")
		b.problem("a", "m1", member.None, alive)
		b.expect("it serves", want[1])
		b.later(time.Minute)
		b.expect("still")
	}
}

// TestPlannedWorkIsNoRecovery checks that work which users asked for has only its own events.
func TestPlannedWorkIsNoRecovery(t *testing.T) {
	b := made(t, false)
	b.problem("a", "m1", member.None, func(r *member.Report) { r.Ready = false })
	for what, change := range map[string]func(*plan.Database, *plan.Layout){
		"a change":   func(want *plan.Database, l *plan.Layout) { want.Change = l.Changed + 1 },
		"a reboot":   func(want *plan.Database, l *plan.Layout) { want.Reboot = l.Rebooted + 1 },
		"a failover": func(want *plan.Database, l *plan.Layout) { want.Failover = l.FailedOver + 1 },
		"a stop":     func(want *plan.Database, _ *plan.Layout) { want.State = member.Stopped },
		"a step": func(_ *plan.Database, l *plan.Layout) {
			l.Steps = []plan.Step{{Name: "restarting m1"}, {Name: "waiting for a primary"}}
		},
		"a creation": func(_ *plan.Database, l *plan.Layout) { l.Created = false },
	} {
		w := b.look()
		d, n := w.databases[0], &Notice{}
		change(&d.Want, &d.layout.Value)
		for range 3 {
			if notes := w.outageNotes(d, plan.Output{Layout: d.layout.Value}, n); len(notes) != 0 {
				t.Errorf("%s: told %v", what, notes)
			}
			w.now = w.now.Add(time.Minute)
		}
	}
}

func TestEventsOfAReplicaWithoutItsSource(t *testing.T) {
	b := made(t, false)
	n := &Notice{}
	told := func(p member.Problem, streaming bool, after time.Duration) []string {
		t.Helper()
		b.problem("a", "m1", p, func(r *member.Report) { r.InRecovery, r.Streaming = true, streaming })
		b.later(after)
		w := b.look()
		d := w.databases[0]
		d.Want.Upstream = &patroni.Upstream{}
		var numbers []string
		for _, one := range w.outageNotes(d, plan.Output{Layout: d.layout.Value}, n) {
			numbers = append(numbers, one.number)
		}
		return numbers
	}
	steps := []struct {
		problem   member.Problem
		streaming bool
		after     time.Duration
		want      []string
	}{
		{member.None, true, 0, nil},
		{member.NotReplicating, false, 0, nil},
		{member.NotReplicating, false, 9 * time.Second, nil},
		{member.None, true, time.Second, nil},
		{member.NotReplicating, false, 0, nil},
		{member.NotReplicating, false, 10 * time.Second, []string{"0045"}},
		{member.NotReplicating, false, time.Hour, nil},
		{member.DiskFull, false, time.Second, nil},
		{member.None, true, time.Second, []string{"0046"}},
		{member.None, true, time.Hour, nil},
	}
	for i, s := range steps {
		if diff := cmp.Diff(s.want, told(s.problem, s.streaming, s.after)); diff != "" {
			t.Errorf("step %d (-want +got)\n%s", i, diff)
		}
	}
	if !n.Apart.Since.IsZero() || n.Apart.Told {
		t.Errorf("left is %+v", n)
	}
}

// TestEventsOfAFailoverThatIsGivenUp checks a failover in which nothing was restarted. For a
// cluster RDS says that it failed.
func TestEventsOfAFailoverThatIsGivenUp(t *testing.T) {
	b := made(t, false)
	for _, c := range []struct {
		cluster, gaveUp bool
		want            string
	}{{false, false, "RDS-EVENT-0006"}, {false, true, ""}, {true, false, ""}, {true, true, "RDS-EVENT-0069"}} {
		d := b.look().databases[0]
		if c.cluster {
			own := *d.Database
			own.Cluster = &state.Record[spec.Cluster]{}
			d.Database = &own
		}
		after := d.layout.Value
		after.FailedOver++
		ops, err := eventsBetween(d, d.layout.Value, plan.Output{Layout: after, GaveUp: c.gaveUp}, b.now)
		if err != nil {
			t.Fatal(err)
		}
		b.put(ops...)
		got := ""
		for _, e := range state.LoadAll[event.Event](b.cache, state.EventRoot) {
			got += e.Value.ID
		}
		b.put(state.DeletePrefix(state.EventRoot))
		if got != c.want {
			t.Errorf("%+v: told %q", c, got)
		}
	}
}
