package server

import (
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
)

// filter is one condition of a Describe action.
type filter struct {
	name   string
	values []string
}

type filters []filter

// readFilters checks names and values of filters.
func readFilters(in []rds.Filter, known ...string) (filters, error) {
	var all filters
	for _, f := range in {
		name := or(f.Name, "")
		if !slices.Contains(known, name) {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "Unrecognized filter name: %s", name)
		}
		if len(f.Values) == 0 {
			return nil, wire.NewError(api.ErrInvalidParameterCombination, "The list of values of the filter %s must not be empty.", name)
		}
		all = append(all, filter{name, f.Values})
	}
	return all, nil
}

// match: every filter has a value that the resource has.
func (all filters) match(attributes map[string][]string) bool {
	return all.matchBy(func(name string) []string { return attributes[name] })
}

// matchBy is match where attributes are found by name.
func (all filters) matchBy(attribute func(name string) []string) bool {
	for _, f := range all {
		has := attribute(f.name)
		if !slices.ContainsFunc(f.values, func(v string) bool {
			return slices.ContainsFunc(has, func(a string) bool { return strings.EqualFold(a, v) })
		}) {
			return false
		}
	}
	return true
}

// page takes one page out of a list that is sorted by key. The marker is the key
// after which the next page begins: it stays right when others come and go.
func page[T any](all []T, key func(T) string, size *int32, marker *string) ([]T, *string, error) {
	return pageUpTo(all, key, size, marker, 100)
}

// pageUpTo is page for the action whose pages may have more records than those of
// the others.
func pageUpTo[T any](all []T, key func(T) string, size *int32, marker *string, limit int) ([]T, *string, error) {
	n, err := pageSize(size, limit)
	if err != nil {
		return nil, nil, err
	}
	return pageOf(all, key, n, marker)
}

func pageSize(size *int32, limit int) (int, error) {
	n := int(or(size, 100))
	if n < 20 || n > limit {
		return 0, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %d for MaxRecords. Must be between 20 and %d", n, limit)
	}
	return n, nil
}

// pageOfSome is page of those that match, without asking this of those that are on
// other pages: there may be thousands.
func pageOfSome[T any](all []T, key func(T) string, matches func(T) bool, size *int32, marker *string) ([]T, *string, error) {
	n, err := pageSize(size, 100)
	if err != nil {
		return nil, nil, err
	}
	after, further, err := afterMarker(marker)
	if err != nil {
		return nil, nil, err
	}
	if further {
		first, found := slices.BinarySearchFunc(all, after, func(v T, after string) int { return strings.Compare(key(v), after) })
		if found {
			first++
		}
		all = all[first:]
	}
	chosen := make([]T, 0, min(n, len(all))+1)
	for _, v := range all {
		if matches(v) {
			chosen = append(chosen, v)
		}
		if len(chosen) > n {
			return chosen[:n], some(makeMarker(key(chosen[n-1]))), nil
		}
	}
	return chosen, nil, nil
}

// afterMarker is the key after which a page begins, unless it is the first one.
func afterMarker(marker *string) (after string, further bool, err error) {
	// An empty marker is that of the first page: some clients send it.
	if or(marker, "") == "" {
		return "", false, nil
	}
	after, err = readMarker(*marker)
	return after, true, err
}

// pageOf is page for a size that is known to be right.
func pageOf[T any](all []T, key func(T) string, n int, marker *string) ([]T, *string, error) {
	after, further, err := afterMarker(marker)
	if err != nil {
		return nil, nil, err
	}
	if further {
		all = slices.DeleteFunc(slices.Clone(all), func(v T) bool { return key(v) <= after })
	}
	if len(all) <= n {
		return all, nil, nil
	}
	return all[:n], some(makeMarker(key(all[n-1]))), nil
}
