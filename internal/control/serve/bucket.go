package serve

import (
	"context"
	"fmt"

	"howdah/internal/identity/bucket"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// buckets returns what lets a database into a bucket for a feature.
func (cfg Config) buckets(store *state.Store, cache *state.Cache) func(ctx context.Context, database, feature string) (member.Bucket, error) {
	return func(ctx context.Context, database, feature string) (member.Bucket, error) {
		common, ok := recordOf(cache, database)
		if !ok {
			return member.Bucket{}, fmt.Errorf("%w: there is no database %s", member.ErrNoRole, database)
		}
		return bucket.Open(ctx, store, cfg.Home.SealKey, common, feature)
	}
}

// recordOf returns what is recorded of an instance or a cluster by its resource id.
func recordOf(cache *state.Cache, database string) (spec.Common, bool) {
	for _, i := range state.ViewAll[spec.Instance](cache, state.InstanceRoot) {
		if i.Value.ResourceID == database {
			return i.Value.Common, true
		}
	}
	for _, c := range state.ViewAll[spec.Cluster](cache, state.ClusterRoot) {
		if c.Value.ResourceID == database {
			return c.Value.Common, true
		}
	}
	return spec.Common{}, false
}
