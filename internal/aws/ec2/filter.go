package ec2

import (
	"strings"

	"howdah/api"
	"howdah/api/ec2"
	"howdah/internal/aws/wire"
)

// filter is one condition of a Describe action.
type filter struct {
	name   string
	values []string
}

// filters are the conditions of a Describe action. Values may hold * and ?.
type filters []filter

// readFilters checks names and values of filters. A known name that ends in : stands for all names
// that begin with it.
func readFilters(in []ec2.Filter, known ...string) (filters, error) {
	var all filters
	for _, f := range in {
		name := wire.Or(f.Name, "")
		if !knownFilter(name, known) {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "The filter '%s' is invalid", name)
		}
		if len(f.Values) == 0 {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "The filter '%s' must have at least one value.", name)
		}
		all = append(all, filter{name, f.Values})
	}
	return all, nil
}

func knownFilter(name string, known []string) bool {
	for _, k := range known {
		family := strings.HasSuffix(k, ":")
		if !family && name == k || family && len(name) > len(k) && strings.HasPrefix(name, k) {
			return true
		}
	}
	return false
}

// match reports whether the resource has a value of every filter.
func (all filters) match(attributes map[string][]string) bool {
	for _, f := range all {
		found := false
		for _, value := range f.values {
			for _, a := range attributes[f.name] {
				found = found || like(value, a)
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// like reports whether a text matches a pattern, in which * stands for any characters and ? for
// one.
func like(pattern, text string) bool {
	star, mark, p, t := -1, 0, 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark, p = p, t, p+1
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			p, mark, t = star+1, mark+1, mark+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
