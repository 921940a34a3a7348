package postmortem

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/edge/seen"
	"howdah/internal/failover/fence"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// begun is a record as reconcile begins it.
func begun() Record {
	return Record{
		ID: "1", Database: "db-1", Name: "orders", Cause: "Patroni elected another leader",
		From: "m1", FromHost: "a", To: "m2", ToHost: "b", Recorded: at(3), Timeline: 2, Discarded: -1,
	}
}

var (
	lost = fence.Incident{
		Kind: fence.Failover, Member: "m1", Host: "a", Cause: "host a was lost", Detected: at(1), Fenced: at(1.1), Revoked: at(1.2),
		Proof: fence.Proof{Method: "quorum", Text: "cut"}, Evidence: []string{"silent"},
	}
	walEnd  = fence.Incident{Kind: fence.WALEnd, Member: "m1", Host: "a", Detected: at(7200), Revoked: at(1.2), OldEnd: 0x5000100, Timeline: 1}
	history = []byte(`[[1,83886080,"no recovery target specified","2026-11-01T12:00:02+00:00","m2"]]`) // 0x5000000
	moved   = seen.Switch{Database: "db-1", From: "m1", To: "m2", Elected: at(1.3), Serving: at(1.5), Switched: at(1.6), Sessions: 7, FirstWrite: at(1.7)}
)

func TestFactsComeInAnyOrder(t *testing.T) {
	want := begun()
	want.Cause, want.Detected, want.Fenced, want.Revoked = "host a was lost", at(1), at(1.1), at(1.2)
	want.Method, want.Proof, want.Evidence = "quorum", "cut", []string{"silent"}
	want.Elected, want.Promoted, want.Switched, want.FirstWrite, want.Sessions = at(1.3), at(1.5), at(1.6), at(1.7), 7
	want.Fork, want.OldEnd, want.Discarded = 0x5000000, 0x5000100, 0x100
	facts := []func(*Record){
		func(r *Record) { r.AddIncident(lost) },
		func(r *Record) { r.AddSwitch(moved) },
		func(r *Record) { r.AddHistory(history) },
		func(r *Record) { r.AddIncident(walEnd) },
	}
	for first := range facts {
		r := begun()
		// All are gathered at each look, and the incidents of a database in any order.
		for range 2 {
			for i := range facts {
				facts[(first+i)%len(facts)](&r)
			}
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("beginning with fact %d (-want +got)\n%s", first, diff)
		}
	}
}

func TestWhatIsOfAnotherFailoverIsLeftOut(t *testing.T) {
	with := func(i fence.Incident, change func(*fence.Incident)) fence.Incident {
		change(&i)
		return i
	}
	for _, c := range []struct {
		name string
		add  func(*Record)
	}{
		{"an incident of another member", func(r *Record) {
			r.AddIncident(with(lost, func(i *fence.Incident) { i.Member = "m3"; i.Cause = "wrong" }))
		}},
		{"an incident long before", func(r *Record) {
			r.AddIncident(with(lost, func(i *fence.Incident) { i.Detected = at(-300); i.Cause = "wrong" }))
		}},
		{"the next failover of the same member", func(r *Record) {
			r.AddIncident(with(lost, func(i *fence.Incident) { i.Detected, i.Revoked = at(20), at(21); i.Cause = "wrong" }))
		}},
		{"an earlier one of the same member", func(r *Record) {
			r.AddIncident(with(lost, func(i *fence.Incident) { i.Detected, i.Revoked, i.Cause = at(-30), at(-29), "wrong" }))
		}},
		{"a hang", func(r *Record) {
			r.AddIncident(with(lost, func(i *fence.Incident) { i.Kind = fence.Hang; i.Cause = "wrong" }))
		}},
		{"where the WAL of another failover ended", func(r *Record) {
			r.AddIncident(with(walEnd, func(i *fence.Incident) { i.Revoked = at(0); i.OldEnd = 0x9000000 }))
		}},
		{"where the WAL of one that has followed ends", func(r *Record) {
			r.AddIncident(with(walEnd, func(i *fence.Incident) { i.Timeline = 2 }))
		}},
		{"where nobody could read it", func(r *Record) {
			r.AddIncident(with(walEnd, func(i *fence.Incident) { i.OldEnd = 0 }))
		}},
		{"a switch to another member", func(r *Record) {
			s := moved
			s.To, s.Sessions = "m3", 99
			r.AddSwitch(s)
		}},
		{"a switch from another member", func(r *Record) {
			s := moved
			s.From, s.Sessions = "m3", 99
			r.AddSwitch(s)
		}},
		{"a switch long before", func(r *Record) {
			s := moved
			s.Elected, s.Sessions = at(-500), 99
			r.AddSwitch(s)
		}},
		{"the next switch of the same members", func(r *Record) {
			s := moved
			s.Elected, s.Sessions = at(60), 99
			r.AddSwitch(s)
		}},
		{"no history", func(r *Record) { r.AddHistory(nil) }},
		{"a damaged history", func(r *Record) { r.AddHistory([]byte(`[[1`)) }},
		{"a history that is not as far yet", func(r *Record) { r.AddHistory([]byte(`[[0,5,"x"],[7]]`)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := begun()
			r.AddIncident(lost)
			before := r
			c.add(&r)
			if diff := cmp.Diff(before, r); diff != "" {
				t.Errorf("it changed (-before +after)\n%s", diff)
			}
		})
	}
}

func TestWALEndNeedsTheRevocation(t *testing.T) {
	r := begun()
	r.AddIncident(walEnd)
	r.AddHistory(history)
	if r.Discarded != -1 || r.OldEnd != 0 {
		t.Errorf("without a known revocation: discarded %d, old end %s", r.Discarded, r.OldEnd)
	}
}

func TestDiscarded(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fence.Incident)
		want   int64
	}{
		{"the agent knew the end at once", func(i *fence.Incident) { i.OldEnd = 0x5000028 }, 0x28},
		{"nothing was beyond the fork", func(i *fence.Incident) { i.OldEnd = 0x4ffff00 }, 0},
		{"not known yet", func(*fence.Incident) {}, -1},
		{"planned", func(i *fence.Incident) { i.Planned = true }, 0},
	} {
		r, i := begun(), lost
		c.change(&i)
		r.AddIncident(i)
		r.AddHistory(history)
		if r.Discarded != c.want {
			t.Errorf("%s: %d, want %d", c.name, r.Discarded, c.want)
		}
	}
}

func TestForkIsFoundAmongLaterTimelines(t *testing.T) {
	r := begun()
	r.AddHistory([]byte(`[[1,83886080,"x"],[2,94371840,"y"]]`))
	if r.Fork != 0x5000000 {
		t.Errorf("fork %s", r.Fork)
	}
}

func TestOpenWhileSomethingIsMissing(t *testing.T) {
	known := begun()
	known.Discarded = 0
	for _, c := range []struct {
		name string
		r    Record
		age  time.Duration
		want bool
	}{
		{"new", known, time.Minute, true},
		{"complete", known, 3 * time.Minute, false},
		{"the lost host is not back", begun(), 23 * time.Hour, true},
		{"nobody waits any more", begun(), 25 * time.Hour, false},
	} {
		if got := c.r.Open(c.r.Recorded.Add(c.age)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSummary(t *testing.T) {
	r := begun()
	if r.Outage() != 0 || !strings.Contains(r.Summary(), "not measured") {
		t.Errorf("%s: %s", r.Outage(), r.Summary())
	}
	r.AddIncident(lost)
	r.AddSwitch(moved)
	const want = "orders: a -> b, host a was lost, first write after 700ms"
	if r.Outage() != 700*time.Millisecond || r.Summary() != want {
		t.Errorf("%s, want %s", r.Summary(), want)
	}
}
