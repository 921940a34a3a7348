package look

import (
	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Tagged is a resource with its tags. Each kind of resource has a finder that answers one.
type Tagged struct {
	Tags []spec.Tag
	// Put is the write of other tags.
	Put  func([]spec.Tag) state.Op
	Gone error // why its tags cannot be changed any more
}

// TagsIn are tags as records keep them.
func TagsIn(in []rds.Tag) []spec.Tag {
	tags := make([]spec.Tag, len(in))
	for i, t := range in {
		tags[i] = spec.Tag{Key: wire.Or(t.Key, ""), Value: wire.Or(t.Value, "")}
	}
	return tags
}

// TagsOut are tags as the API shows them.
func TagsOut(in []spec.Tag) []rds.Tag {
	tags := make([]rds.Tag, len(in))
	for i, t := range in {
		tags[i] = rds.Tag{Key: wire.Some(t.Key), Value: wire.Some(t.Value)}
	}
	return tags
}
