package server

import (
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/wire"
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
	for _, f := range all {
		if !slices.ContainsFunc(f.values, func(v string) bool {
			return slices.ContainsFunc(attributes[f.name], func(a string) bool { return strings.EqualFold(a, v) })
		}) {
			return false
		}
	}
	return true
}

// page takes one page out of a list that is sorted by key. The marker is the key
// after which the next page begins: it stays right when others come and go.
func page[T any](all []T, key func(T) string, size *int32, marker *string) ([]T, *string, error) {
	n := int(or(size, 100))
	if n < 20 || n > 100 {
		return nil, nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %d for MaxRecords. Must be between 20 and 100", n)
	}
	// An empty marker is that of the first page: some clients send it.
	if or(marker, "") != "" {
		after, err := readMarker(*marker)
		if err != nil {
			return nil, nil, err
		}
		all = slices.DeleteFunc(slices.Clone(all), func(v T) bool { return key(v) <= after })
	}
	if len(all) <= n {
		return all, nil, nil
	}
	return all[:n], some(makeMarker(key(all[n-1]))), nil
}
