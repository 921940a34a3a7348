package reconcile

import "howdah/internal/state"

// released returns the writes that give addresses back.
func released(addresses []string) []state.Op {
	var ops []state.Op
	for _, a := range addresses {
		ops = append(ops, state.Delete(state.Address(a)))
	}
	return ops
}
