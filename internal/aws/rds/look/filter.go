package look

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

// Filters are the conditions of a Describe action. Each of them holds for what it answers.
type Filters []filter

// ReadFilters checks names and values of filters.
func ReadFilters(in []rds.Filter, known ...string) (Filters, error) {
	var all Filters
	for _, f := range in {
		name := wire.Or(f.Name, "")
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

// Match: every filter has a value that the resource has.
func (all Filters) Match(attributes map[string][]string) bool {
	return all.MatchBy(func(name string) []string { return attributes[name] })
}

// MatchBy is Match where attributes are found by name.
func (all Filters) MatchBy(attribute func(name string) []string) bool {
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
