package plan

import (
	"slices"
	"strings"
)

// onlyWaits is the prefix of the names of steps that only wait.
const onlyWaits = "waiting for "

// Acts reports whether any current step does more than wait. Then the planner may have caused what
// clients see.
func (l Layout) Acts() bool {
	return slices.ContainsFunc(l.Steps, func(s Step) bool { return !strings.HasPrefix(s.Name, onlyWaits) })
}
