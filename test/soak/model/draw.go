package model

import (
	"pgregory.net/rapid"
)

// Options say which sequences are drawn.
type Options struct {
	Limit int // members of all databases
	// AtOnce is how many steps are done at once at most.
	AtOnce int
	// Without are verbs that are left out.
	Without map[string]string // with the reason
	// Faults: false leaves all of them out.
	Faults bool
}

// stretches is how many times as many steps a sequence has as -rapid.steps says, on average.
const stretches = 4

// Draw draws a sequence: each step is possible after those before it.
func Draw(t *rapid.T, o Options) Sequence {
	var s Sequence
	fleet := New(o.Limit)
	var before *Fleet // the round's that is being drawn
	var round []Step
	first := Step{Verb: "network", Words: setting["network"].draw(t, fleet)}
	if err := Apply(fleet, first); err != nil {
		t.Fatal(err)
	}
	s = append(s, first)
	actions := map[string]func(*rapid.T){}
	for _, name := range Verbs() {
		v := verbs[name]
		if _, out := o.Without[name]; out || setting[name].apply != nil || !o.Faults && (Step{Verb: name}).IsFault() {
			continue
		}
		actions[name] = func(t *rapid.T) {
			v, name := v, name
			if len(fleet.Databases) == 0 { // nothing else can be done to none
				v, name = verbs["create"], "create"
			}
			step := Step{Verb: name, Words: v.draw(t, fleet)}
			next := fleet.Clone()
			if err := v.apply(next, step); err != nil {
				return // there is nothing to do it to
			}
			step.Together = len(round) > 0 && len(round) < o.AtOnce && rapid.Bool().Draw(t, "together") && together(before, round, step)
			if !step.Together {
				before, round = fleet, nil
			}
			round, fleet = append(round, step), next
			s = append(s, step)
		}
	}
	// Several short ones: one alone is as likely to end at once as to go on for long.
	for range stretches {
		t.Repeat(actions)
	}
	return s
}
