package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"howdah/api"
)

// Validate checks an input structure against the model: its required members
// must be set (MissingParameter) and its values within their limits
// (InvalidParameterValue). It reports the first fault, by the parameter's full
// name, for example Tags.Tag.2.Key.
func Validate(in any) error {
	v, err := structOf(in)
	if err != nil {
		return err
	}
	if fault := validate(v); fault != nil {
		return fault.answer()
	}
	return nil
}

// fault is what is wrong with one value. The path grows from the value outwards
// while validate returns, so that a valid input never builds one.
type fault struct {
	path    string
	missing bool
	what    string
}

func (f *fault) under(path string) *fault {
	if f.path == "" {
		f.path = path
	} else {
		f.path = path + "." + f.path
	}
	return f
}

func (f *fault) answer() *Error {
	if f.missing {
		return NewError(api.ErrMissingParameter, "The request must contain the parameter %s.", f.path)
	}
	return invalid(f.path, "%s", f.what)
}

func validate(v reflect.Value) *fault {
	p := planOf(v.Type())
	for i := range p.fields {
		f := &p.fields[i]
		value := v.Field(f.index)
		if value.IsNil() {
			if f.Required {
				return &fault{path: f.Param, missing: true}
			}
			continue
		}
		if found := validateMember(f, value); found != nil {
			return found.under(f.Param)
		}
	}
	return nil
}

func validateMember(f *field, v reflect.Value) *fault {
	switch f.kind {
	case kindStruct:
		return validate(v.Elem())
	case kindStrings, kindStructs:
		if f.check != nil && !f.check.holds(int64(v.Len())) {
			return &fault{what: "must have " + f.check.bounds() + " elements"}
		}
		return validateElements(f, v)
	case kindString:
		return f.check.text(f, v.Elem().String())
	case kindInt:
		if f.check != nil && !f.check.holds(v.Elem().Int()) {
			return &fault{what: fmt.Sprintf("must be %s, not %d", f.check.bounds(), v.Elem().Int())}
		}
	default: // the models limit nothing else
	}
	return nil
}

func validateElements(f *field, v reflect.Value) *fault {
	if f.kind == kindStrings && f.each == nil {
		return nil
	}
	for i := range v.Len() {
		var found *fault
		if f.kind == kindStrings {
			found = f.each.text(f, v.Index(i).String())
		} else {
			found = validate(v.Index(i))
		}
		if found != nil {
			return found.under(strings.TrimPrefix(f.paramElem, f.Param+".") + strconv.Itoa(i+1))
		}
	}
	return nil
}

// text checks a text; a nil check has no limits.
func (c *check) text(f *field, s string) *fault {
	switch {
	case c == nil:
		return nil
	case c.Enum != nil && !slices.Contains(c.Enum, s):
		return &fault{what: "must be one of " + strings.Join(c.Enum, ", ") + notShown(f, s)}
	case !c.holds(int64(utf8.RuneCountInString(s))):
		return &fault{what: "must have " + c.bounds() + " characters"}
	case c.pattern != nil && !c.pattern.MatchString(s):
		return &fault{what: "must match the pattern " + c.Pattern + notShown(f, s)}
	}
	for _, part := range c.Without {
		if strings.Contains(s, part) {
			return &fault{what: "must not contain '" + part + "'" + notShown(f, s)}
		}
	}
	return nil
}

func (c *check) holds(n int64) bool {
	return (c.Min == nil || n >= *c.Min) && (c.Max == nil || n <= *c.Max)
}

func (c *check) bounds() string {
	switch {
	case c.Max == nil:
		return fmt.Sprintf("at least %d", *c.Min)
	case c.Min == nil:
		return fmt.Sprintf("at most %d", *c.Max)
	}
	return fmt.Sprintf("%d to %d", *c.Min, *c.Max)
}
