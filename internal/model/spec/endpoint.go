package spec

import "slices"

// Seats resolves the lists of a custom endpoint of a cluster with these instances: a
// static one names its instances, an exclusion list takes all others.
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
