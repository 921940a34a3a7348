package experiment

import (
	"fmt"
	"maps"
	"slices"
)

// Needs of experiments: what a target has to be able to.
const (
	NeedHowdah   = "howdah"
	NeedWrites   = "writes"
	NeedStandbys = "standbys"
	NeedFaults   = "faults"
)

// needs says each need in words, after "the target has to".
var needs = map[string]string{
	NeedHowdah:   "be a Howdah, which makes and removes databases",
	NeedWrites:   "let the lab write",
	NeedStandbys: "have standbys",
	NeedFaults:   "let the lab break its hosts: be a Howdah on this machine",
}

// Need says a need in words, after "the target has to".
func Need(name string) string { return needs[name] }

func (e *Experiment) checkNeeds() error {
	for _, n := range e.Needs {
		if needs[n] == "" {
			return fmt.Errorf("needs: %q is not known", n) //nolint:err113
		}
	}
	return nil
}

// stepNeeds says what steps of a kind need. Steps that are optional need nothing.
var stepNeeds = map[string]string{
	"restore": NeedHowdah, "reboot": NeedHowdah, "failover": NeedHowdah, "crash": NeedFaults, "fault": NeedFaults,
}

// Requires lists all that a target has to be able to: what the experiment says, and what its steps and
// the factors of its server imply. It is sorted.
func (e *Experiment) Requires() []string {
	all := map[string]bool{}
	for _, n := range e.Needs {
		all[n] = true
	}
	for _, step := range slices.Concat(e.Prepare, e.Each) {
		if need := stepNeeds[step.Kind()]; need != "" && step[step.Kind()]["optional"] != true {
			all[need] = true
		}
	}
	if e.shapes() || e.reaches(WayReader, WayPGPool) {
		all[NeedHowdah] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Breaks reports whether one of the steps, also one that is optional, breaks something on this machine.
func (e *Experiment) Breaks() bool {
	return slices.ContainsFunc(slices.Concat(e.Prepare, e.Each), func(s Step) bool { return stepNeeds[s.Kind()] == NeedFaults })
}

// Restores reports whether a snapshot of the data is restored before settings are measured.
func (e *Experiment) Restores() bool {
	return slices.ContainsFunc(e.Each, func(s Step) bool { return s.Kind() == "restore" })
}
