package fence_test

import (
	"fmt"
	"slices"
	"testing"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
)

// The model below is small enough to try everything: an old primary with up to three
// standbys, of which any k confirm a commit, and one candidate at a gate. The primary
// writes, and standbys receive and confirm, at any moment, until they are cut off or
// promoted: that the primary stood still, and for how long, is only one of the orders. A
// rule of the gate is right if in no order the primary has acknowledged what the candidate
// does not have.

const mostStandbys = 3

// world is one state of the model. It is a value, to be remembered.
type world struct {
	log       int               // how much the primary has written
	has       [mostStandbys]int // how much each standby has, and has confirmed
	cut       [mostStandbys]bool
	asked     [mostStandbys]bool // the gate asked it for its position
	answer    [mostStandbys]int
	seen      [mostStandbys]bool // the gate saw its cut reported before it asked
	candidate int
	promoted  bool
	end       int // what the candidate had when it was promoted
}

// mostWritten bounds the primary's log: an old write, one that is under way, one more.
const mostWritten = 3

type model struct {
	n, k int
	// gate decides by what it has seen: the standbys that it counts besides the candidate.
	gate func(m model, w world) bool
}

func (m model) sync() patroni.Sync {
	s := patroni.Sync{Leader: "p", Quorum: m.n - m.k}
	for i := range m.n {
		s.Standbys = append(s.Standbys, name(i))
	}
	return s
}

func name(i int) string { return fmt.Sprintf("s%d", i) }

// acknowledged is how much at least k standbys have confirmed.
func (m model) acknowledged(w world) int {
	has := slices.Clone(w.has[:m.n])
	slices.Sort(has)
	return has[m.n-m.k]
}

// steps are all that can happen next.
func (m model) steps(w world) (next []world) {
	add := func(change func(*world)) {
		n := w
		change(&n)
		next = append(next, n)
	}
	if w.log < mostWritten {
		add(func(n *world) { n.log++ })
	}
	for i := range m.n {
		leaves := w.promoted && i == w.candidate
		if !w.cut[i] && !leaves && w.has[i] < w.log {
			add(func(n *world) { n.has[i]++ })
		}
		if !w.cut[i] {
			add(func(n *world) { n.cut[i] = true })
		}
		if !w.promoted && i != w.candidate && !w.asked[i] {
			add(func(n *world) { n.asked[i], n.answer[i], n.seen[i] = true, n.has[i], n.cut[i] })
		}
	}
	if !w.promoted && m.gate(m, w) {
		add(func(n *world) { n.promoted, n.end = true, n.has[n.candidate] })
	}
	return next
}

// loses looks for an order of events in which an acknowledged write is lost.
func (m model) loses() (lost *world, states, promotions int) {
	seen := map[world]bool{}
	var open []world
	for c := range m.n {
		open = append(open, world{candidate: c})
	}
	for len(open) > 0 {
		w := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[w] {
			continue
		}
		seen[w] = true
		if w.promoted {
			promotions++
			if m.acknowledged(w) > w.end {
				return &w, len(seen), promotions
			}
		}
		open = append(open, m.steps(w)...)
	}
	return nil, len(seen), promotions
}

// counted is the rule: a standby counts that was cut off and, asked after that, not ahead.
func counted(m model, w world) bool {
	var fenced []string
	for i := range m.n {
		if w.asked[i] && w.seen[i] && w.answer[i] <= w.has[w.candidate] {
			fenced = append(fenced, name(i))
		}
	}
	return fence.Enough(m.sync(), name(w.candidate), fenced)
}

func TestNoOrderOfEventsLosesAnAcknowledgedWrite(t *testing.T) {
	for n := 1; n <= mostStandbys; n++ {
		for k := 1; k <= n; k++ {
			lost, states, promotions := model{n: n, k: k, gate: counted}.loses()
			if lost != nil {
				t.Errorf("any %d of %d: %+v", k, n, *lost)
			}
			if promotions == 0 {
				t.Errorf("any %d of %d: nobody is ever promoted", k, n)
			}
			t.Logf("any %d of %d: %d states, %d with a promotion", k, n, states, promotions)
		}
	}
}

// What looks like a proof and is none: each of these rules loses writes.
func TestRulesThatLose(t *testing.T) {
	votes := func(m model, w world, counts func(i int) bool) []string {
		var may []string
		for i := range m.n {
			if counts(i) {
				may = append(may, name(i))
			}
		}
		return may
	}
	for _, c := range []struct {
		name string
		gate func(model, world) bool
	}{
		{"the age of a lease, and Patroni's votes", func(m model, w world) bool {
			return fence.Enough(m.sync(), name(w.candidate), votes(m, w, func(i int) bool { return w.asked[i] && w.answer[i] <= w.has[w.candidate] }))
		}},
		{"votes from before the cuts", func(m model, w world) bool {
			return fence.Enough(m.sync(), name(w.candidate), votes(m, w, func(i int) bool { return w.asked[i] && w.cut[i] && w.answer[i] <= w.has[w.candidate] }))
		}},
		{"cuts without votes", func(m model, w world) bool {
			return fence.Enough(m.sync(), name(w.candidate), votes(m, w, func(i int) bool { return w.cut[i] }))
		}},
		{"one cut too few", func(m model, w world) bool {
			s := m.sync()
			s.Quorum--
			return counted(m, w) || fence.Enough(s, name(w.candidate), votes(m, w, func(i int) bool { return w.asked[i] && w.seen[i] && w.answer[i] <= w.has[w.candidate] }))
		}},
	} {
		if lost, _, _ := (model{n: 2, k: 1, gate: c.gate}).loses(); lost == nil {
			t.Errorf("%s: the model finds nothing wrong with it, so it finds nothing", c.name)
		}
	}
}

func TestCountTables(t *testing.T) {
	for _, c := range []struct {
		name       string
		standbys   []string
		quorum     int
		candidate  string
		fenced     []string
		enough     bool
		candidates []string
		unfenced   []string
	}{
		{"one standby, promoted", []string{"m2"}, 0, "m2", nil, true, []string{"m2"}, nil},
		{"one standby, another one promoted", []string{"m2"}, 0, "m3", nil, false, []string{"m2"}, []string{"m2"}},
		{"… while that is cut off", []string{"m2"}, 0, "m3", []string{"m2"}, true, []string{"m2"}, nil},
		{"two that both confirm", []string{"m2", "m3"}, 0, "m2", nil, true, []string{"m2", "m3"}, []string{"m3"}},
		{"any of two, none cut off", []string{"m2", "m3"}, 1, "m2", nil, false, nil, []string{"m3"}},
		{"… the other one cut off", []string{"m2", "m3"}, 1, "m2", []string{"m3"}, true, []string{"m2"}, nil},
		{"… the one that is cut off promoted", []string{"m2", "m3"}, 1, "m3", []string{"m3"}, false, []string{"m2"}, []string{"m2"}},
		{"… both cut off", []string{"m2", "m3"}, 1, "m3", []string{"m2", "m3"}, true, []string{"m2", "m3"}, nil},
		{"… somebody else's cut", []string{"m2", "m3"}, 1, "m2", []string{"m9"}, false, nil, []string{"m3"}},
		{"any of three, one cut off", []string{"m2", "m3", "m4"}, 2, "m2", []string{"m3"}, false, nil, []string{"m4"}},
		{"… two cut off", []string{"m2", "m3", "m4"}, 2, "m2", []string{"m3", "m4"}, true, []string{"m2"}, nil},
		{"nobody in sync", nil, 0, "m2", []string{"m2"}, false, nil, nil},
	} {
		s := patroni.Sync{Leader: "m1", Standbys: c.standbys, Quorum: c.quorum}
		if got := fence.Enough(s, c.candidate, c.fenced); got != c.enough {
			t.Errorf("%s: enough %v", c.name, got)
		}
		if got := fence.Candidates(s, c.fenced); !slices.Equal(got, c.candidates) {
			t.Errorf("%s: candidates %v, want %v", c.name, got, c.candidates)
		}
		if got := fence.Unfenced(s, c.candidate, c.fenced); !slices.Equal(got, c.unfenced) {
			t.Errorf("%s: unfenced %v, want %v", c.name, got, c.unfenced)
		}
	}
}
