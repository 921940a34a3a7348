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
	return (&filling{known: known, left: mostFilled}).fill(in, 0)
}

const (
	// deepest bounds how often a value may be named by a value.
	deepest = 8
	// mostFilled bounds how many values one step may take, and longestText how long a text may get, in
	// bytes: values that name each other many times would fill the memory.
	mostFilled, longestText = 10_000, 1 << 20
)

// filling puts what is known into one step.
type filling struct {
	known map[string]any
	left  int // values that may still be put in
}

func (f *filling) fill(in any, depth int) (any, error) {
	if f.left--; f.left < 0 {
		return nil, fmt.Errorf("%w: values name each other more than %d times", ErrForm, mostFilled)
	}
	switch v := in.(type) {
	case string:
		return f.text(v, depth)
	case []any:
		out := make([]any, len(v))
		for n := range v {
			var err error
			if out[n], err = f.fill(v[n], depth); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			var err error
			if out[key], err = f.fill(v[key], depth); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return in, nil
	}
}

func (f *filling) text(text string, depth int) (any, error) {
	if depth > deepest {
		return nil, fmt.Errorf("%w: values name each other in a circle: %s", ErrForm, text)
	}
	if name, ok := strings.CutPrefix(text, "$"); ok && nameForm.MatchString(name) {
		value, there := f.known[name]
		if !there {
			return nil, fmt.Errorf("%w: nothing has the name %s", ErrForm, name)
		}
		return f.fill(value, depth+1)
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		value, there := f.known[name]
		if !closed || !there {
			return nil, fmt.Errorf("%w: nothing has the name %.40q", ErrForm, name)
		}
		value, err := f.fill(value, depth+1)
		if err != nil {
			return nil, err
		}
		if out.WriteString(Word(value)); out.Len() > longestText {
			return nil, fmt.Errorf("%w: a text has more than %d bytes", ErrForm, longestText)
		}
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
