package spec

import "slices"

// Seats returns the instances that a custom endpoint may lead to. instances are all instances of
// its cluster. A static list names the endpoint's instances; an exclusion list leaves out the named
// ones. Instances that are being deleted are left out. readersOnly says whether the primary is left
// out, too.
func (e Endpoint) Seats(instances []Instance) (seats []string, readersOnly bool) {
	for _, i := range instances {
		listed := slices.Contains(e.Static, i.ResourceID)
		if len(e.Static) == 0 {
			listed = !slices.Contains(e.Excluded, i.ResourceID)
		}
		if listed && !i.Deleting {
			seats = append(seats, i.ResourceID)
		}
	}
	return seats, e.Type == "READER"
}
