package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Setting has one level of each factor, by the factor's name.
type Setting map[string]any

// Key names a setting: `clients=16 tables=logged`, in the order of the factors.
func (e *Experiment) Key(s Setting) string {
	var all []string
	for _, f := range e.Factors {
		all = append(all, f.Name+"="+Word(s[f.Name]))
	}
	return strings.Join(all, " ")
}

// Settings lists all settings, the last factor varying fastest. Without factors there is one.
func (e *Experiment) Settings() []Setting {
	all := []Setting{{}}
	for _, f := range e.Factors {
		var next []Setting
		for _, s := range all {
			for _, level := range f.Levels {
				more := maps.Clone(s)
				more[f.Name] = level
				next = append(next, more)
			}
		}
		all = next
	}
	return all
}

// Point is one run of one setting.
type Point struct {
	Run     int // from 1 on
	Setting Setting
}

// Points lists all runs in the order in which they are made: settings take turns, as machines drift. A
// round has each setting once. Every other round goes backwards, so that no setting always comes first.
func (e *Experiment) Points() []Point {
	var all []Point
	settings := e.Settings()
	for run := 1; run <= e.Runs; run++ {
		for _, s := range settings {
			all = append(all, Point{Run: run, Setting: s})
		}
		slices.Reverse(settings)
	}
	return all
}

// Quickly returns the experiment as a quick run makes it.
func (e *Experiment) Quickly() *Experiment {
	q := *e
	q.Values = maps.Clone(e.Values)
	maps.Copy(q.Values, e.Quick.Values)
	q.Factors = slices.Clone(e.Factors)
	for n, f := range q.Factors {
		if levels := e.Quick.Levels[f.Name]; len(levels) > 0 {
			q.Factors[n].Levels = levels
		}
	}
	if e.Quick.Runs > 0 {
		q.Runs = e.Quick.Runs
	}
	return &q
}

// Fill puts values and levels in the place of their names, in whatever has the form of JSON: "$scale" is
// the value itself, and "at ${scale}" is a text with it. An unknown name is an error.
func (e *Experiment) Fill(in any, s Setting) (any, error) {
	known := maps.Clone(e.Values)
	if known == nil {
		known = map[string]any{}
	}
	maps.Copy(known, s)
	return fill(in, known, 0)
}

// deepest bounds how often a value may be named by a value.
const deepest = 8

func fill(in any, known map[string]any, depth int) (any, error) {
	switch v := in.(type) {
	case string:
		return fillText(v, known, depth)
	case []any:
		out := make([]any, len(v))
		for n := range v {
			var err error
			if out[n], err = fill(v[n], known, depth); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			var err error
			if out[key], err = fill(v[key], known, depth); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return in, nil
	}
}

func fillText(text string, known map[string]any, depth int) (any, error) {
	if depth > deepest {
		return nil, fmt.Errorf("%w: values name each other in a circle: %s", ErrForm, text)
	}
	if name, ok := strings.CutPrefix(text, "$"); ok && nameForm.MatchString(name) {
		value, there := known[name]
		if !there {
			return nil, fmt.Errorf("%w: nothing has the name %s", ErrForm, name)
		}
		return fill(value, known, depth+1)
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		value, there := known[name]
		if !closed || !there {
			return nil, fmt.Errorf("%w: nothing has the name %.40q", ErrForm, name)
		}
		value, err := fill(value, known, depth+1)
		if err != nil {
			return nil, err
		}
		out.WriteString(Word(value))
		text = after
	}
}

// decode reads what was filled in into a struct. What the struct does not have is an error.
func decode(filled, into any) error {
	text, err := json.Marshal(filled)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
