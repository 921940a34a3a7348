package home

import (
	"slices"
	"testing"

	"howdah/internal/state"
)

func TestWipeTakesGroups(t *testing.T) {
	for _, root := range []string{state.SubnetGroupRoot, state.OptionGroupRoot} {
		if !slices.Contains(remains, root) {
			t.Errorf("a wipe leaves %s", root)
		}
	}
}
