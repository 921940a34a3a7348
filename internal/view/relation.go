package view

import (
	"howdah/internal/control/plan"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// relations finds who follows whom.
func relations(instances []state.Record[*spec.Instance], clusters []state.Record[spec.Cluster]) map[string]plan.Links {
	sources := make(map[string]*spec.Common, len(instances)+len(clusters))
	for _, i := range instances {
		sources[i.Value.ResourceID] = &i.Value.Common
	}
	for n := range clusters {
		sources[clusters[n].Value.ResourceID] = &clusters[n].Value.Common
	}
	followed := map[string]*spec.Common{} // by who follows
	for _, i := range instances {
		if source, ok := sources[i.Value.Source]; ok && i.Value.Follows() && !i.Value.Deleting {
			followed[i.Value.ResourceID] = source
		}
	}
	links := map[string]plan.Links{}
	for _, i := range instances {
		source, ok := followed[i.Value.ResourceID]
		if !ok {
			continue
		}
		own := links[i.Value.ResourceID]
		own.Upstream = &patroni.Upstream{
			Host: source.ServedAt(), Port: source.Port, Slot: plan.SlotName(i.Value.ResourceID), Origin: originAbove(source, followed),
		}
		links[i.Value.ResourceID] = own
		theirs := links[source.ResourceID]
		theirs.Followers = append(theirs.Followers, i.Value.ResourceID)
		links[source.ResourceID] = theirs
		for above, n := source, 0; above != nil && n <= len(followed); above, n = followed[above.ResourceID], n+1 {
			theirs := links[above.ResourceID]
			theirs.Below = append(theirs.Below, i.Value.ResourceID)
			links[above.ResourceID] = theirs
		}
	}
	return links
}

// originAbove is where the data of a read replica come from in the end; nil if it is no
// read replica.
func originAbove(replica *spec.Common, followed map[string]*spec.Common) *patroni.Address {
	at := replica
	for range followed { // a chain is no longer than that
		above, ok := followed[at.ResourceID]
		if !ok {
			break
		}
		at = above
	}
	if at == replica {
		return nil
	}
	return &patroni.Address{Host: at.ServedAt(), Port: at.Port}
}
