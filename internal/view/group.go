package view

import (
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Groups are all parameter groups, and the records that they are made of.
func Groups(cache *state.Cache) (plan.Groups, []state.Record[spec.ParameterGroup]) {
	groups := plan.Groups{}
	records := state.LoadAll[spec.ParameterGroup](cache, state.ParameterGroupRoot)
	for _, r := range records {
		groups.Add(r.Value)
	}
	return groups, records
}
