package server

import "slices"

// Implemented are the actions that Howdah does, those that always answer an empty
// list among them: "rds CreateDBInstance", sorted.
func Implemented() []string {
	var all []string
	for service, byName := range actions {
		for name := range byName {
			all = append(all, service+" "+name)
		}
	}
	for name := range nothing {
		all = append(all, "rds "+name)
	}
	slices.Sort(all)
	return all
}
