package server

import (
	"strings"
	"time"

	"howdah/api/rds"
	"howdah/internal/spec"
)

// or is the value of an optional parameter, or what stands for it.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// some is a pointer to a value, for answers.
func some[T any](v T) *T { return &v }

// text is a pointer to a text, or nil for an empty one: absent in answers.
func text(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

// number is a pointer to a number for answers.
func number(v int) *int32 { return some(int32(v)) }

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// lower is an identifier as it is stored: case does not count.
func lower(p *string) string { return strings.ToLower(strings.TrimSpace(or(p, ""))) }

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
