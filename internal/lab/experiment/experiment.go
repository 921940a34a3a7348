// Package experiment reads experiments: what varies, what is held, what runs, and what is compared. It
// does no I/O but for the experiments that are built in.
package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Text is for people, in each language that reports have.
type Text struct {
	English  string `json:"en"`
	Japanese string `json:"ja"`
}

// In returns the text of a language: "en" or "ja". What is not translated is in English.
func (t Text) In(language string) string {
	if language == "ja" && t.Japanese != "" {
		return t.Japanese
	}
	return t.English
}

// Experiment is one question, and how it is answered.
type Experiment struct {
	Name     string `json:"name"`
	Title    Text   `json:"title"`
	Question Text   `json:"question"`
	// Document names the report that is the model, if there is one.
	Document string `json:"document,omitempty"`
	// Needs lists what the target has to be able to: see Needs.
	Needs []string `json:"needs,omitempty"`
	// Server is what Howdah makes if no target is given.
	Server Server `json:"server"`
	// Values have names, by which steps use them: $scale.
	Values map[string]any `json:"values,omitempty"`
	// Factors vary. Each setting has one level of each; the last factor varies fastest.
	Factors []Factor `json:"factors"`
	// Runs is how often each setting is measured.
	Runs int `json:"runs"`
	// Prepare runs once, before the first setting, and Each for each run of each setting.
	Prepare []Step `json:"prepare,omitempty"`
	Each    []Step `json:"each"`
	// Compare names what is compared in the end.
	Compare []Comparison `json:"compare,omitempty"`
	// Quick replaces values, levels and runs for a run of some two minutes.
	Quick Quick `json:"quick"`
}

// Factor is one of the things that vary.
type Factor struct {
	Name   string `json:"name"`
	Title  Text   `json:"title"`
	Levels []any  `json:"levels"`
	// Log says that a plot has it on a logarithmic axis.
	Log bool `json:"log,omitempty"`
}

// Step is one thing that is done: exactly one key, which is its kind, with its arguments.
type Step map[string]map[string]any

// Kind returns the kind of a step.
func (s Step) Kind() string {
	for kind := range s {
		return kind
	}
	return ""
}

// Comparison says which levels of a factor are compared with one of them, and by which figure.
type Comparison struct {
	Factor string `json:"factor"`
	Base   any    `json:"base"`
	Figure string `json:"figure"`
	// Less says that a smaller figure is better.
	Less bool `json:"less,omitempty"`
}

// Quick is what a quick run replaces.
type Quick struct {
	Values map[string]any   `json:"values,omitempty"`
	Levels map[string][]any `json:"levels,omitempty"`
	Runs   int              `json:"runs,omitempty"`
}

// ErrForm says that a file is no experiment. The words before it say where.
var ErrForm = errors.New("it is no experiment")

// Read reads a file. What it does not know is an error.
func Read(text []byte) (*Experiment, error) {
	plain, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(plain))
	decoder.DisallowUnknownFields()
	var e Experiment
	if err := decoder.Decode(&e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return &e, nil
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,40}$`)

// Most bounds what one experiment may ask for.
const (
	mostFactors  = 6
	mostSettings = 1000
	mostRuns     = 100
)

func (e *Experiment) check() error {
	problem := fmt.Errorf
	switch {
	case !nameForm.MatchString(e.Name):
		return problem("name: %q is not of small letters and digits", e.Name)
	case e.Title.English == "" || e.Question.English == "":
		return problem("title and question: each needs an English text, en")
	case e.Runs < 1 || e.Runs > mostRuns:
		return problem("runs: %d is not from 1 to %d", e.Runs, mostRuns)
	case e.Quick.Runs < 0 || e.Quick.Runs > mostRuns:
		return problem("quick.runs: %d is not from 1 to %d", e.Quick.Runs, mostRuns)
	case len(e.Each) == 0:
		return problem("each: it has no step")
	case len(e.Factors) > mostFactors:
		return problem("factors: there are %d, and %d may be", len(e.Factors), mostFactors)
	}
	for _, check := range []func() error{e.checkFactors, e.checkNeeds, e.checkQuick, e.checkSteps, e.checkServer, e.checkComparisons} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Experiment) checkFactors() error {
	for n, f := range e.Factors {
		switch {
		case !nameForm.MatchString(f.Name) || f.Title.English == "":
			return fmt.Errorf("factors: %q needs a name of small letters, and a title", f.Name) //nolint:err113
		case slices.ContainsFunc(e.Factors[:n], func(other Factor) bool { return other.Name == f.Name }):
			return fmt.Errorf("factors: there are two of the name %s", f.Name) //nolint:err113
		case len(f.Levels) == 0:
			return fmt.Errorf("factors: %s has no level", f.Name) //nolint:err113
		}
		if err := plain(f.Levels); err != nil {
			return fmt.Errorf("levels of %s: %w", f.Name, err)
		}
	}
	return e.checkSettings()
}

// checkSettings refuses factors that make too many settings.
func (e *Experiment) checkSettings() error {
	settings := 1
	for _, f := range e.Factors {
		if settings *= len(f.Levels); settings > mostSettings {
			return fmt.Errorf("factors: they make %d settings or more, and %d may be", settings, mostSettings) //nolint:err113
		}
	}
	return nil
}

// plain refuses levels that are no text, number or truth, and levels that are there twice.
func plain(levels []any) error {
	var all []string
	for _, l := range levels {
		switch l.(type) {
		case string, float64, bool:
		default:
			return fmt.Errorf("%v is no text, number or truth", l) //nolint:err113
		}
		all = append(all, Word(l))
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != len(levels) {
		return errors.New("one of them is there twice") //nolint:err113
	}
	return nil
}

func (e *Experiment) checkQuick() error {
	for name := range e.Quick.Values {
		if _, ok := e.Values[name]; !ok {
			return fmt.Errorf("quick.values: there is no value %s", name) //nolint:err113
		}
	}
	for name, levels := range e.Quick.Levels {
		if e.factor(name) == nil || len(levels) == 0 {
			return fmt.Errorf("quick.levels: there is no factor %s, or it would have no level", name) //nolint:err113
		}
		if err := plain(levels); err != nil {
			return fmt.Errorf("quick.levels of %s: %w", name, err)
		}
	}
	if err := e.Quickly().checkSettings(); err != nil {
		return fmt.Errorf("quick: %w", err)
	}
	return nil
}

func (e *Experiment) checkComparisons() error {
	for _, c := range e.Compare {
		f := e.factor(c.Factor)
		if f == nil || !figureForm.MatchString(c.Figure) {
			return fmt.Errorf("compare: it needs a figure, and one of the factors: %q is none", c.Factor) //nolint:err113
		}
		for _, levels := range [][]any{f.Levels, e.Quick.Levels[c.Factor]} {
			if len(levels) > 0 && !slices.ContainsFunc(levels, func(l any) bool { return Word(l) == Word(c.Base) }) {
				return fmt.Errorf("compare: %s is no level of %s", Word(c.Base), c.Factor) //nolint:err113
			}
		}
	}
	return nil
}

func (e *Experiment) factor(name string) *Factor {
	for n := range e.Factors {
		if e.Factors[n].Name == name {
			return &e.Factors[n]
		}
	}
	return nil
}

// Word is how a level or a value is written: 16, not 16.0.
func Word(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return strings.Trim(string(text), `"`)
	}
}
