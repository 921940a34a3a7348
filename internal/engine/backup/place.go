package backup

import (
	"fmt"
	"slices"
)

// Index returns which of a place's repositories has this name. A name that it does not have is a
// fault of the caller.
func (p Place) Index(repository string) int {
	i := slices.IndexFunc(p.Repositories, func(a Access) bool { return a.Name == repository })
	if i < 0 {
		panic(fmt.Sprintf("the place of %s has no repository %q", p.Database, repository))
	}
	return i
}

// Workers is how many processes work at once.
func (p Place) Workers() int {
	if p.Processes > 0 {
		return p.Processes
	}
	return DefaultProcesses
}
