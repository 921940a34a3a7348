package topic

import (
	"encoding/json"
	"slices"
	"strings"
)

// MatchBody reports whether a body passes. A body that is not a JSON object never passes.
func (f Filter) MatchBody(body string) bool {
	value, err := decode(body)
	if err != nil {
		return false
	}
	object, ok := value.(map[string]any)
	return ok && f.match(object)
}

// MatchAttributes reports whether attributes pass. Binary attributes are ignored. A list of strings
// passes if one of its elements does.
func (f Filter) MatchAttributes(attributes map[string]Attribute) bool {
	object := map[string]any{}
	for name, a := range attributes {
		kind, _, _ := strings.Cut(a.Type, ".")
		switch {
		case a.Type == "String.Array" || strings.HasPrefix(a.Type, "String.Array."):
			if list, err := decode(a.Value); err == nil {
				object[name] = list
			}
		case kind == "String":
			object[name] = a.Value
		case kind == "Number":
			object[name] = json.Number(a.Value)
		}
	}
	return f.match(object)
}

func (f Filter) match(object map[string]any) bool {
	for _, k := range f.keys {
		if !k.match(object) {
			return false
		}
	}
	return len(f.or) == 0 || slices.ContainsFunc(f.or, func(one Filter) bool { return one.match(object) })
}

func (k key) match(object map[string]any) bool {
	value, there := object[k.name]
	if k.inner != nil {
		return k.within(value)
	}
	values := leaves(value)
	for _, t := range k.tests {
		switch {
		case t.absent:
			if !there {
				return true
			}
		case t.present:
			if there {
				return true
			}
		case there && slices.ContainsFunc(values, t.take):
			return true
		}
	}
	return false
}

// within reports whether a value passes the inner filter: an object, or one object of a list. If
// the value is missing or null, only a filter that asks for absent keys passes.
func (k key) within(value any) bool {
	for _, v := range listed(value) {
		if object, ok := v.(map[string]any); ok && k.inner.match(object) {
			return true
		}
	}
	return value == nil && k.inner.match(nil)
}

// leaves returns the values that conditions look at. A list gives each of its values, an object
// none.
func leaves(value any) []any {
	var all []any
	for _, v := range listed(value) {
		switch v := v.(type) {
		case map[string]any:
		case []any:
			all = append(all, leaves(v)...)
		default:
			all = append(all, v)
		}
	}
	return all
}
