package look

import (
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// HoldGroups writes the groups that a new or changed database uses, so that they
// cannot be deleted meanwhile: as they were checked, so that one that is gone since is
// noticed. The default groups cannot be deleted.
func (l *Look) HoldGroups(scope spec.Scope, subnetGroup, optionGroup string) []state.Op {
	return l.Hold(state.SubnetGroup(scope.Account, scope.Region, subnetGroup), state.OptionGroup(scope.Account, scope.Region, optionGroup))
}

// Hold writes those of some keys that were checked, as HoldGroups does.
func (l *Look) Hold(keys ...string) []state.Op {
	var ops []state.Op
	for _, key := range keys {
		if op, ok := l.Checked[key]; ok {
			ops = append(ops, op)
		}
	}
	return ops
}
