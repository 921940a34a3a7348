package server

import (
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// Short names of package wire's values, for the actions of RDS.

func or[T any](p *T, otherwise T) T    { return wire.Or(p, otherwise) }
func set[T any](value *T, p *T)        { wire.Set(value, p) }
func some[T any](v T) *T               { return &v }
func text(v string) *string            { return wire.Text(v) }
func number(v int) *int32              { return wire.Number(v) }
func amount(v int) *int32              { return wire.Amount(v) }
func moment(t time.Time) *time.Time    { return wire.Moment(t) }
func lower(p *string) string           { return wire.Lower(p) }
func list[T any](v []T) []T            { return wire.List(v) }
func given(in any, but ...string) bool { return wire.Given(in, but...) }

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
		tags[i] = spec.Tag{Key: or(t.Key, ""), Value: or(t.Value, "")}
	}
	return tags
}

func tagsOut(in []spec.Tag) []rds.Tag {
	tags := make([]rds.Tag, len(in))
	for i, t := range in {
		tags[i] = rds.Tag{Key: some(t.Key), Value: some(t.Value)}
	}
	return tags
}

// ints is an optional number as records keep it.
func ints(p *int32) *int {
	if p == nil {
		return nil
	}
	return some(int(*p))
}
