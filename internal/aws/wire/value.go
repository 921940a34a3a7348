package wire

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// Members of the generated structures are pointers, so that absent and empty differ. These
// functions make and read them.

// Or returns the value of an optional member, or what stands for it.
func Or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// Set changes a value to that of an optional member, if that was given.
func Set[T any](value *T, p *T) {
	if p != nil {
		*value = *p
	}
}

// Some returns a pointer to a value, for answers.
func Some[T any](v T) *T { return &v }

// Text returns a pointer to a text, or nil for an empty one, which is absent in answers.
func Text(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

// Number returns a pointer to a number, for answers.
func Number(v int) *int32 { return Some(int32(v)) }

// Amount returns a pointer to a number, or nil for zero, which is absent in answers.
func Amount(v int) *int32 {
	if v == 0 {
		return nil
	}
	return Number(v)
}

// Moment returns a pointer to a time, or nil for none, which is absent in answers.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Lower returns an identifier as it is stored if its case does not count.
func Lower(p *string) string { return strings.ToLower(strings.TrimSpace(Or(p, ""))) }

// List never returns nil: an empty list is shown, an absent one is not.
func List[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// Given reports whether a request, which in points to, has any member except those named.
func Given(in any, but ...string) bool {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() && !slices.Contains(but, v.Type().Field(i).Name) {
			return true
		}
	}
	return false
}
