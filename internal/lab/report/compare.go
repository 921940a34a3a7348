package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/lab/stats"
)

// SideBySide has two results of one experiment.
type SideBySide struct {
	Experiment string `json:"experiment"`
	First      Side   `json:"first"`
	Second     Side   `json:"second"`
	// Differs has what differs in the environments: a name, and both values.
	Differs [][3]string `json:"differs,omitempty"`
	// Figures compares what was measured in settings that both have.
	Figures []Both `json:"figures"`
	// Only has the keys of settings that one of them has.
	Only []string `json:"only,omitempty"`
}

// Side is one of two results.
type Side struct {
	Name   string    `json:"name"` // where it is, as far as it takes to tell both apart
	Target string    `json:"target"`
	Began  time.Time `json:"began"`
	Howdah string    `json:"howdah"`
	Quick  bool      `json:"quick"`
}

// Both is a figure of a setting in both results. The two were not measured in turns, so the ratio is
// that of the medians, and Carried says no more than that the runs do not overlap.
type Both struct {
	Setting string        `json:"setting"`
	Figure  string        `json:"figure"`
	First   stats.Summary `json:"first"`
	Second  stats.Summary `json:"second"`
	Ratio   float64       `json:"ratio"` // second over first
	Carried bool          `json:"carried"`
	Why     string        `json:"why,omitempty"`
	P       float64       `json:"p"`

	found stats.Comparison
}

// ErrUnlike says that two results cannot be compared.
var ErrUnlike = errors.New("these results cannot be compared")

// resultFactor is the factor by which two results differ.
const resultFactor = "result"

// Compare compares two results, and writes the pages into a directory, one for each language. It
// returns what they say, and their paths.
func Compare(first, second, out string, languages ...string) (SideBySide, []string, error) {
	a, err := open(first)
	if err != nil {
		return SideBySide{}, nil, err
	}
	b, err := open(second)
	if err != nil {
		return SideBySide{}, nil, err
	}
	if why := unlike(a, b); why != "" {
		return SideBySide{}, nil, fmt.Errorf("%w: %s", ErrUnlike, why)
	}
	a.r.Sum(a.e) // one that is not finished has no sums
	b.r.Sum(b.e)
	names := apart(first, second)
	s := sideBySide(a, b, names)
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // others may read reports
		return s, nil, fmt.Errorf("write the comparison: %w", err)
	}
	files, paths := map[string][]byte{}, []string(nil)
	for _, language := range languages {
		text, err := comparison(a.in(language), b.in(language), s)
		if err != nil {
			return s, nil, err
		}
		name := strings.Replace(FileName(language), "report", "compare", 1)
		files[name] = text
		paths = append(paths, filepath.Join(out, name))
	}
	return s, paths, writeAll(out, files)
}

// unlike says why the figures of two results are not of the same thing; "": they are. The servers may
// differ: that is what a comparison is for.
func unlike(a, b writer) string {
	switch {
	case a.r.Experiment != b.r.Experiment:
		return fmt.Sprintf("they are of the experiments %s and %s", a.r.Experiment, b.r.Experiment)
	case a.r.Quick != b.r.Quick:
		return "one of them is of a quick run"
	case !slices.Equal(factorNames(a.e), factorNames(b.e)):
		return fmt.Sprintf("the factors of one are %s, and of the other %s", strings.Join(factorNames(a.e), ", "), strings.Join(factorNames(b.e), ", "))
	case !alike(a.e.Prepare, b.e.Prepare) || !alike(a.e.Each, b.e.Each):
		return "they did different steps"
	}
	names := maps.Clone(a.e.Values)
	maps.Copy(names, b.e.Values)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if one, other := a.e.Values[name], b.e.Values[name]; !alike(one, other) && (uses(name, a.e.Prepare) || uses(name, a.e.Each)) {
			return fmt.Sprintf("%s is %v in one, and %v in the other", name, one, other)
		}
	}
	return ""
}

func alike(one, other any) bool { return asJSON(one) == asJSON(other) }

// uses reports whether steps use a value.
func uses(name string, steps []experiment.Step) bool {
	return regexp.MustCompile(`\$\{?` + regexp.QuoteMeta(name) + `\b`).MatchString(asJSON(steps))
}

// asJSON writes what was read from a file, which always can be written.
func asJSON(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

func factorNames(e *experiment.Experiment) (all []string) {
	for _, f := range e.Factors {
		all = append(all, f.Name)
	}
	return all
}

// apart names two directories by their ends, as far as they differ.
func apart(first, second string) [2]string {
	a, b := strings.Split(filepath.Clean(first), "/"), strings.Split(filepath.Clean(second), "/")
	for len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if one, two := a[len(a)-1], b[len(b)-1]; one != two {
		return [2]string{one, two}
	}
	return [2]string{"1", "2"}
}

func side(w writer, name string) Side {
	return Side{Name: name, Target: w.r.Target.Name, Began: w.r.Began, Howdah: w.r.Howdah, Quick: w.r.Quick}
}

func sideBySide(a, b writer, names [2]string) SideBySide {
	s := SideBySide{Experiment: a.r.Experiment, First: side(a, names[0]), Second: side(b, names[1]), Differs: differs(a, b)}
	others := map[string]result.Setting{}
	for _, setting := range b.r.Settings {
		others[setting.Setting] = setting
	}
	for _, setting := range a.r.Settings {
		other, there := others[setting.Setting]
		delete(others, setting.Setting)
		if !there {
			s.Only = append(s.Only, names[0]+": "+setting.Setting)
			continue
		}
		for _, figure := range a.mainFigures() {
			if one, ok := both(a, b, setting, other, figure); ok {
				s.Figures = append(s.Figures, one)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(others)) {
		s.Only = append(s.Only, names[1]+": "+key)
	}
	return s
}

// both compares as many runs of each as the other has, too.
func both(a, b writer, setting, other result.Setting, figure string) (Both, bool) {
	one, two := a.figureOf(setting.Setting, figure), b.figureOf(setting.Setting, figure)
	n := min(len(one), len(two))
	found, err := stats.Compare(one[:n], two[:n])
	if n == 0 || err != nil {
		return Both{}, false
	}
	found.Base, found.Other = setting.Figures[figure], other.Figures[figure]
	v := Both{
		Setting: setting.Setting, Figure: figure, First: found.Base, Second: found.Other, Carried: found.Carried, Why: found.Why, P: found.P,
	}
	if v.First.Median != 0 {
		v.Ratio = v.Second.Median / v.First.Median
	}
	found.Ratio = stats.Summary{Runs: 1, Median: v.Ratio, Least: v.Ratio, Greatest: v.Ratio}
	if v.First.Least > 0 {
		found.Ratio.Least, found.Ratio.Greatest = v.Second.Least/v.First.Greatest, v.Second.Greatest/v.First.Least
	}
	v.found = found
	return v, true
}

// figureOf lists a figure of the runs of a setting that count.
func (w writer) figureOf(key, figure string) (all []float64) {
	for _, p := range w.r.Points {
		if value, known := p.Figures[figure]; known && p.Setting == key && p.Struck == "" {
			all = append(all, value)
		}
	}
	return all
}

// differs lists what differs in the environments.
func differs(a, b writer) (all [][3]string) {
	if a.r.Quick != b.r.Quick {
		all = append(all, [3]string{"quick", fmt.Sprint(a.r.Quick), fmt.Sprint(b.r.Quick)})
	}
	if a.r.Howdah != b.r.Howdah {
		all = append(all, [3]string{"howdah", a.r.Howdah, b.r.Howdah})
	}
	one, two := a.facts(a.environment()), b.facts(b.environment())
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if two[name] != one[name] {
			all = append(all, [3]string{name, one[name], two[name]})
		}
		delete(two, name)
	}
	for _, name := range slices.Sorted(maps.Keys(two)) {
		all = append(all, [3]string{name, "", two[name]})
	}
	return all
}

// facts are rows of an environment and its settings, by name.
func (w writer) facts(rows [][2]string, settings [][3]string) map[string]string {
	all := map[string]string{}
	for _, r := range rows {
		if r[0] == word(w.language, "env_storage") { // how much is free changes by itself, and comes last
			r[1] = r[1][:max(0, strings.LastIndex(r[1], ", "))]
		}
		all[r[0]] = strings.TrimPrefix(all[r[0]]+"; "+r[1], "; ")
	}
	for _, s := range settings {
		all[s[0]] = s[1]
	}
	return all
}

// compareView is what the page of a comparison shows.
type compareView struct {
	W               map[string]string
	Style           template.CSS
	Title, Question string
	Quick           bool
	Sides           [][2]string
	Findings        []finding
	Chance          string
	Differs         [][3]string
	Only            []string
	Plots           []plotView
	Tables          []table
	Names           [2]string
	Problems        []string
}

// comparison is the page: both results are two levels of one more factor.
func comparison(a, b writer, s SideBySide) ([]byte, error) {
	w := a.with(b, s)
	plots, err := w.plots()
	if err != nil {
		return nil, err
	}
	views := w.plotViews(plots)
	for n, p := range plots {
		if p.Kind == "ratio" {
			views[n].Note = word(a.language, "note_beside")
		}
	}
	v := compareView{
		W: words[a.language], Style: template.CSS(styleText), Title: a.e.Title.In(a.language), Question: a.e.Question.In(a.language), Quick: a.r.Quick || b.r.Quick, //nolint:gosec // it is ours
		Findings: w.findings(), Chance: w.chance(), Differs: differs(a, b), Only: s.Only, Plots: views, Tables: w.tables(), Names: [2]string{s.First.Name, s.Second.Name},
	}
	for n, each := range []writer{a, b} {
		name := v.Names[n]
		v.Sides = append(v.Sides, [2]string{name, fmt.Sprintf(word(a.language, "measured"), moment(each.r.Began), moment(each.r.Ended), each.r.Howdah) + " " + each.r.Target.Name})
		for _, p := range each.problems() {
			v.Problems = append(v.Problems, name+": "+p)
		}
	}
	var text strings.Builder
	if err := comparePage.Execute(&text, v); err != nil {
		return nil, fmt.Errorf("write the comparison: %w", err)
	}
	return []byte(text.String()), nil
}

// with makes one result of two.
func (w writer) with(b writer, s SideBySide) writer {
	e := *w.e
	e.Factors = append([]experiment.Factor{{
		Name: resultFactor, Title: experiment.Text{English: "result", Japanese: "結果"}, Levels: []any{s.First.Name, s.Second.Name},
	}}, e.Factors...)
	e.Compare = nil
	merged := &result.Result{Experiment: w.r.Experiment, Quick: w.r.Quick}
	levels := func(setting result.Setting, name string) result.Setting {
		setting.Levels = maps.Clone(setting.Levels)
		if setting.Levels == nil {
			setting.Levels = map[string]any{}
		}
		setting.Levels[resultFactor] = name
		setting.Setting = resultFactor + "=" + name + " " + setting.Setting
		return setting
	}
	for n, each := range []writer{w, b} {
		for _, setting := range each.r.Settings {
			merged.Settings = append(merged.Settings, levels(setting, []string{s.First.Name, s.Second.Name}[n]))
		}
	}
	seen := map[string]bool{}
	for _, f := range s.Figures {
		if !seen[f.Figure] {
			seen[f.Figure] = true
			e.Compare = append(e.Compare, experiment.Comparison{Factor: resultFactor, Base: s.First.Name, Figure: f.Figure})
		}
		merged.Comparisons = append(merged.Comparisons, result.Comparison{
			Factor: resultFactor, Figure: f.Figure, Figures: f.found,
			Base: resultFactor + "=" + s.First.Name + " " + f.Setting, Other: resultFactor + "=" + s.Second.Name + " " + f.Setting,
		})
	}
	return writer{r: merged, e: &e, language: w.language}
}
