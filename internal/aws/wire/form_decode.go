package wire

import (
	"cmp"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
)

// legacyElement is how old SDKs, and examples in the RDS reference, name the
// elements of every list.
const legacyElement = "member"

// DecodeForm sets the members of the structure that dst points to from query
// parameters. Members without a parameter stay nil; parameters without a member
// are ignored. "Name=" gives an empty, non-nil list or map. A list's elements
// are sorted by their numbers, which may have gaps. Where a parameter is given
// twice, the first counts.
//
// A value that its member cannot hold is answered with InvalidParameterValue,
// naming the parameter: the code with which RDS refuses bad values, so that
// scripts need to know one code only.
func DecodeForm(values url.Values, dst any) error {
	v, err := structOf(dst)
	if err != nil {
		return err
	}
	d := formDecoder{values: values}
	return d.structure(v, slices.Sorted(maps.Keys(values)), 0, 0)
}

// formDecoder walks sorted parameter names: all that belongs to one member, or
// to one element of a list, is one run of neighbours. Each method gets the run
// and the length of the prefix that its names share.
type formDecoder struct{ values url.Values }

func (d formDecoder) structure(v reflect.Value, names []string, prefix, depth int) error {
	if depth > maxDepth && len(names) > 0 {
		return invalid(names[0], "is nested more than %d levels deep", maxDepth)
	}
	p := planOf(v.Type())
	for len(names) > 0 {
		segment, run := nextRun(names, prefix)
		name := names[0]
		nested := len(name) > prefix+len(segment)
		names = names[len(run):]
		f, ok := p.byParam[segment]
		if !ok {
			continue
		}
		var err error
		if nested {
			err = d.nested(f, v.Field(f.index), run, prefix+len(segment)+1, depth)
		} else {
			err = d.value(f, v.Field(f.index), name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nextRun returns the next dotted segment of the first name behind the prefix,
// and the names at the front that go with it: that name alone if it ends there,
// or else all that share the segment and its dot.
func nextRun(names []string, prefix int) (segment string, run []string) {
	rest := names[0][prefix:]
	end := strings.IndexByte(rest, '.')
	if end < 0 {
		return rest, names[:1]
	}
	shared := names[0][:prefix+end+1]
	n := 1
	for n < len(names) && strings.HasPrefix(names[n], shared) {
		n++
	}
	return rest[:end], names[:n]
}

// value handles the parameter that bears the member's own name.
func (d formDecoder) value(f *field, v reflect.Value, name string) error {
	text := d.values.Get(name)
	if f.kind.scalar() {
		return setScalar(f, v, name, text)
	}
	if text != "" {
		return invalid(name, "is not a single value")
	}
	switch f.kind {
	case kindStruct:
		v.Set(reflect.New(f.inner))
	case kindMap:
		v.Set(reflect.ValueOf(map[string]string{}))
	default:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	return nil
}

// nested handles the parameters whose names go on behind the member's.
func (d formDecoder) nested(f *field, v reflect.Value, names []string, prefix, depth int) error {
	switch f.kind {
	case kindStruct:
		v.Set(reflect.New(f.inner))
		return d.structure(v.Elem(), names, prefix, depth+1)
	case kindStructs, kindStrings, kindMap:
		run := names
		if !f.Flat {
			var element string
			if run, element = chooseElements(f, names, prefix); run == nil {
				return nil
			}
			prefix += len(element) + 1
		}
		items, err := numbered(run, prefix)
		if err != nil {
			return err
		}
		return d.list(f, v, items, depth)
	default: // names do not go on behind a scalar's
		return nil
	}
}

// chooseElements returns the names of the list's elements. The names that old
// SDKs use count only where the list's own are missing.
func chooseElements(f *field, names []string, prefix int) (run []string, element string) {
	for len(names) > 0 {
		segment, next := nextRun(names, prefix)
		nested := len(names[0]) > prefix+len(segment)
		names = names[len(next):]
		if nested && segment == f.Element {
			return next, segment
		}
		if nested && segment == legacyElement && f.kind != kindMap {
			run, element = next, segment
		}
	}
	return run, element
}

// item is one element of a list: its number, the names that belong to it, and
// how much of each name leads to it.
type item struct {
	number int
	path   string
	names  []string
}

// numbered splits the names of a list's elements by their numbers, in order.
func numbered(names []string, prefix int) ([]item, error) {
	var items []item
	for len(names) > 0 {
		segment, run := nextRun(names, prefix)
		path := names[0][:prefix+len(segment)]
		number, err := strconv.Atoi(segment)
		if err != nil || number < 1 || strconv.Itoa(number) != segment {
			return nil, invalid(path, "does not end in a number from 1")
		}
		names = names[len(run):]
		if last := len(items) - 1; last >= 0 && items[last].number == number {
			items[last].names = append(slices.Clip(items[last].names), run...)
			continue
		}
		if len(items) == maxElements {
			return nil, invalid(path[:prefix-1], "has more than %d elements", maxElements)
		}
		items = append(items, item{number: number, path: path, names: run})
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.number, b.number) })
	return items, nil
}

func (d formDecoder) list(f *field, v reflect.Value, items []item, depth int) error {
	switch f.kind {
	case kindMap:
		return d.entries(v, items)
	case kindStrings:
		texts := make([]string, 0, len(items))
		for _, it := range items {
			if it.names[0] == it.path {
				texts = append(texts, d.values.Get(it.path))
			}
		}
		v.Set(reflect.ValueOf(texts))
		return nil
	default: // structures
	}
	slice := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, it := range items {
		if it.names[0] == it.path {
			if d.values.Get(it.path) != "" {
				return invalid(it.path, "is not a single value")
			}
			it.names = it.names[1:]
		}
		if err := d.structure(slice.Index(i), it.names, len(it.path)+1, depth+1); err != nil {
			return err
		}
	}
	v.Set(slice)
	return nil
}

func (d formDecoder) entries(v reflect.Value, items []item) error {
	entries := make(map[string]string, len(items))
	for _, it := range items {
		if !d.values.Has(it.path + ".key") {
			return invalid(it.path, "has no key")
		}
		key := d.values.Get(it.path + ".key")
		if _, twice := entries[key]; twice {
			return invalid(it.path, "repeats a key")
		}
		entries[key] = d.values.Get(it.path + ".value")
	}
	v.Set(reflect.ValueOf(entries))
	return nil
}

// invalid returns the error of a parameter's value. what completes "The parameter X". A name can be
// as long as the request, so only its beginning is shown.
func invalid(name, what string, args ...any) *Error {
	const most = 200
	if len(name) > most {
		name = name[:most] + "..."
	}
	e := NewError(api.ErrInvalidParameterValue, what, args...)
	e.Message = "The parameter " + name + " " + e.Message + "."
	return e
}
