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
	// Faults says whether faults are drawn.
	Faults bool
}

// stretches is how many times as many steps a sequence has as -rapid.steps says, on average.
const stretches = 4

// tries is how many verbs are drawn for a step until one is possible.
const tries = 8

// often has verbs that are drawn this many times as often as the others. Without databases nothing
// else happens.
var often = map[string]int{"create": 3, "replica": 2, "failover": 2, "pause": 2, "snapshot": 2, "restore": 2, "restore-moment": 3}

// Draw draws a sequence. Each step is possible after those before it.
func Draw(t *rapid.T, o Options) Sequence {
	d := drawing{Options: o, fleet: New(o.Limit)}
	first := Step{Verb: "network", Words: setting["network"].draw(t, d.fleet)}
	if err := Apply(d.fleet, first); err != nil {
		t.Fatal(err)
	}
	d.done = append(d.done, first)
	for _, name := range Verbs() {
		if _, out := o.Without[name]; out || setting[name].apply != nil || !o.Faults && (Step{Verb: name}).IsFault() {
			continue
		}
		for range max(often[name], 1) {
			d.verbs = append(d.verbs, name)
		}
	}
	// Several short stretches: one alone is as likely to end at once as to go on for long.
	for range stretches {
		t.Repeat(map[string]func(*rapid.T){"step": d.step})
	}
	return d.done
}

// drawing is a sequence that grows.
type drawing struct {
	Options
	verbs  []string
	done   Sequence
	fleet  *Fleet // after all that is done
	before *Fleet // before the round that is being drawn
	round  []Step
}

func (d *drawing) step(t *rapid.T) {
	for range tries {
		name := evenly(t, d.verbs, "verb")
		if len(d.fleet.Databases) == 0 { // nothing else can be done to none
			name = "create"
		}
		step := Step{Verb: name, Words: verbs[name].draw(t, d.fleet)}
		next := d.fleet.Clone()
		if err := verbs[name].apply(next, step); err != nil {
			continue // there is nothing to do it to
		}
		step.Together = len(d.round) > 0 && len(d.round) < d.AtOnce && rapid.Bool().Draw(t, "together") && together(d.before, d.round, step)
		if !step.Together {
			d.before, d.round = d.fleet, nil
		}
		d.round, d.fleet, d.done = append(d.round, step), next, append(d.done, step)
		return
	}
}

// evenly draws one of all, each as likely as the others. rapid by itself prefers those at the
// beginning.
func evenly[T any](t *rapid.T, all []T, label string) T {
	n := 0
	for range 8 {
		n *= 2
		if rapid.Bool().Draw(t, label) {
			n++
		}
	}
	return all[n%len(all)]
}
