package plan

import (
	"slices"
	"strings"
)

// onlyWaits is what the names of steps begin with that do nothing.
const onlyWaits = "waiting for "

// Acts reports whether any of the steps that go on does more than wait: then what
// clients see may be its doing.
func (l Layout) Acts() bool {
	return slices.ContainsFunc(l.Steps, func(s Step) bool { return !strings.HasPrefix(s.Name, onlyWaits) })
}
