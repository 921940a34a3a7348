package server

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"howdah/api/rds"
	"howdah/internal/model/spec"
)

// or is the value of an optional parameter, or what stands for it.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// set changes a value to that of an optional parameter, if it was given.
func set[T any](value *T, p *T) {
	if p != nil {
		*value = *p
	}
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

// amount is a pointer to a number, or nil for zero: absent in answers.
func amount(v int) *int32 {
	if v == 0 {
		return nil
	}
	return number(v)
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// lower is an identifier as it is stored: case does not count.
func lower(p *string) string { return strings.ToLower(strings.TrimSpace(or(p, ""))) }

// list is never nil: an empty list is shown, an absent one is not.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// given reports whether a request has any parameter but those named.
func given(in any, but ...string) bool {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() && !slices.Contains(but, v.Type().Field(i).Name) {
			return true
		}
	}
	return false
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
