package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Variables are the values that a journey has met, by name.
type Variables map[string]any

var reference = regexp.MustCompile(`\$\{([a-z-]+)\}`)

// fill puts values in the place of variables. If a text is nothing but a variable, it becomes the
// value itself, which may be no text.
func (v Variables) fill(value any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		filled := map[string]any{}
		for key, each := range value {
			one, err := v.fill(each)
			if err != nil {
				return nil, err
			}
			filled[key] = one
		}
		return filled, nil
	case []any:
		filled := []any{}
		for _, each := range value {
			one, err := v.fill(each)
			if err != nil {
				return nil, err
			}
			filled = append(filled, one)
		}
		return filled, nil
	case string:
		return v.fillText(value)
	}
	return value, nil
}

func (v Variables) fillText(text string) (any, error) {
	var missing string
	filled := reference.ReplaceAllStringFunc(text, func(found string) string {
		name := reference.FindStringSubmatch(found)[1]
		if _, known := v[name]; !known {
			missing = name
		}
		return textOf(v[name])
	})
	if missing != "" {
		return nil, fmt.Errorf("the variable %s has no value yet", missing)
	}
	if found := reference.FindStringSubmatch(text); found != nil && found[0] == text {
		return v[found[1]], nil
	}
	return filled, nil
}

// match compares an answer with what is wanted of it. It gives values to variables that have none.
// If the two differ, it says where, and changes nothing.
func (v Variables) match(want, got any) error {
	trial := maps.Clone(v)
	if err := trial.compare("the answer", want, got); err != nil {
		return err
	}
	maps.Copy(v, trial)
	return nil
}

func (v Variables) compare(at string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		return v.compareObject(at, want, got)
	case []any:
		return v.compareList(at, want, got)
	case string:
		return v.compareText(at, want, got)
	}
	if want != got {
		return differs(at, want, got)
	}
	return nil
}

func (v Variables) compareObject(at string, want map[string]any, got any) error {
	object, ok := got.(map[string]any)
	if !ok {
		return differs(at, want, got)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if err := v.compare(at+"."+key, want[key], object[key]); err != nil {
			return err
		}
	}
	return nil
}

// compareList finds each wanted item. Some clients leave empty lists out, others do not.
func (v Variables) compareList(at string, want []any, got any) error {
	list, ok := got.([]any)
	if !ok && got != nil || len(want) == 0 && len(list) > 0 {
		return differs(at, want, got)
	}
	for n, wanted := range want {
		if !slices.ContainsFunc(list, func(item any) bool { return v.match(wanted, item) == nil }) {
			return differs(fmt.Sprintf("%s[%d]", at, n), wanted, got)
		}
	}
	return nil
}

func (v Variables) compareText(at, want string, got any) error {
	found := reference.FindStringSubmatch(want)
	if found != nil && found[0] == want && got != nil {
		if _, known := v[found[1]]; !known {
			v[found[1]] = got
			return nil
		}
	}
	pattern, names := v.pattern(want)
	values := pattern.FindStringSubmatch(textOf(got))
	if values == nil || got == nil {
		return differs(at, want, got)
	}
	for n, name := range names {
		v[name] = values[n+1]
	}
	return nil
}

// pattern returns what matches a wanted text, and names the variables that get their values by it.
func (v Variables) pattern(want string) (pattern *regexp.Regexp, names []string) {
	var b strings.Builder
	plain := func(text string) { b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, "(?:.*)")) }
	end := 0
	for _, place := range reference.FindAllStringSubmatchIndex(want, -1) {
		plain(want[end:place[0]])
		end = place[1]
		name := want[place[2]:place[3]]
		if value, known := v[name]; known {
			b.WriteString(regexp.QuoteMeta(textOf(value)))
			continue
		}
		names = append(names, name)
		b.WriteString("(.+)")
	}
	plain(want[end:])
	return regexp.MustCompile("(?s)^" + b.String() + "$"), names
}

func differs(at string, want, got any) error {
	return fmt.Errorf("%s is %s, not %s", at, short(got), short(want))
}

// textOf returns a text unchanged, and anything else as JSON.
func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

const longest = 2000

func short(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > longest {
		return string(text[:longest]) + "…"
	}
	return string(text)
}
