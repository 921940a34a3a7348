package view

import (
	"howdah/internal/failover/fence"
	"howdah/internal/state"
)

// Unproved is what a promotion waits for, and the open case or the plea that says so; "" if
// none waits.
func Unproved(cache *state.Cache, id string) (why string, open *fence.Case, plea *fence.Plea) {
	for _, c := range state.LoadAll[fence.Case](cache, state.FencePrefix(id)) {
		if c.Value.Phase == fence.Cutting && c.Value.Waiting != "" {
			return c.Value.Waiting, &c.Value, nil
		}
	}
	waits, err := state.Load[fence.Plea](cache, state.Plea(id))
	if err != nil {
		return "", nil, nil
	}
	return waits.Value.Why, nil, &waits.Value
}
