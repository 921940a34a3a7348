package server

import (
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// orBlank is an error of something that is not there, unless it has no name.
func orBlank(name, parameter string, missing error) error {
	if name == "" {
		return front.Blank(parameter)
	}
	return missing
}

func tagsIn(in []rds.Tag) []spec.Tag {
	tags := make([]spec.Tag, len(in))
	for i, t := range in {
		tags[i] = spec.Tag{Key: wire.Or(t.Key, ""), Value: wire.Or(t.Value, "")}
	}
	return tags
}

func tagsOut(in []spec.Tag) []rds.Tag {
	tags := make([]rds.Tag, len(in))
	for i, t := range in {
		tags[i] = rds.Tag{Key: wire.Some(t.Key), Value: wire.Some(t.Value)}
	}
	return tags
}

// ints is an optional number as records keep it.
func ints(p *int32) *int {
	if p == nil {
		return nil
	}
	return wire.Some(int(*p))
}
