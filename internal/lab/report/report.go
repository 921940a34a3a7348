// Package report writes what an experiment found as a page that opens offline, and prints well: the
// findings, tables, plots, what was measured and how, and all that failed.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// FileName returns the name of the report in a language.
func FileName(language string) string {
	if language == "en" {
		return "report.html"
	}
	return "report." + language + ".html"
}

// Write writes the reports of a result into its directory, and its plots beside them.
func Write(dir string, languages ...string) error {
	r, err := result.Read(dir)
	if err != nil {
		return err
	}
	e, err := Experiment(r)
	if err != nil {
		return err
	}
	ticks, err := result.ReadSeries(dir)
	if err != nil {
		return err
	}
	plots, err := Plots(r, e, ticks)
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, p := range plots {
		files[p.Name+".svg"], files[p.Name+".png"] = p.SVG, p.PNG
	}
	for _, language := range languages {
		var text strings.Builder
		if err := page.Execute(&text, view(r, e, plots, language)); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		files[FileName(language)] = []byte(text.String())
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil { //nolint:gosec // others may read reports
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// Experiment returns the experiment that a result is of, as it was run.
func Experiment(r *result.Result) (*experiment.Experiment, error) {
	e, err := experiment.Read([]byte(r.Source))
	if err != nil {
		return nil, fmt.Errorf("read the experiment of a result: %w", err)
	}
	if r.Quick {
		e = e.Quickly()
	}
	return e, nil
}

// Plots draws all that there is to draw of a result.
func Plots(r *result.Result, e *experiment.Experiment, ticks []result.Tick) (all []Plot, err error) {
	add := func(p Plot, bad error) {
		if bad != nil && err == nil {
			err = bad
		}
		if len(p.SVG) > 0 {
			all = append(all, p)
		}
	}
	drawn := map[string]bool{}
	for _, c := range e.Compare {
		if f := swept(e); f != nil && !drawn[c.Figure] {
			drawn[c.Figure] = true
			add(sweep(r, e, *f, c.Figure))
		}
		add(ratios(r, e, c))
	}
	for _, name := range []string{"tps", "nopm"} {
		add(seconds(r, e, ticks, name))
	}
	return all, err
}

// swept returns the last factor of two or more numbers; nil: there is none.
func swept(e *experiment.Experiment) *experiment.Factor {
	for n := range slices.Backward(e.Factors) {
		f := &e.Factors[n]
		text := slices.ContainsFunc(f.Levels, func(l any) bool { _, isNumber := l.(float64); return !isNumber })
		if len(f.Levels) > 1 && !text {
			return f
		}
	}
	return nil
}

// pageView is what the page shows.
type pageView struct {
	W                    map[string]string
	Title, Question      string
	Quick                bool
	Measured, Unfinished string
	Findings             []string
	Columns              []string
	Rows                 []row
	Plots                []plotView
	Target               result.Target
	Parameters           [][2]string
	Commands             []string
	Problems             []string
	Source               string
}

type row struct {
	Setting string
	Runs    int
	Cells   []cell
}

type cell struct {
	Median, Spread string
	Unsteady       bool
}

type plotView struct {
	Name, Note string
	SVG        template.HTML
}

func view(r *result.Result, e *experiment.Experiment, plots []Plot, language string) pageView {
	w := maps.Clone(words["en"])
	maps.Copy(w, words[language])
	v := pageView{
		W: w, Title: e.Title.In(language), Question: e.Question.In(language), Quick: r.Quick, Target: r.Target, Problems: r.Problems, Source: r.Source,
		Findings: findings(r, e, language), Commands: commands(r),
	}
	if r.Ended.IsZero() {
		v.Unfinished = w["unfinished"]
	}
	v.Measured = fmt.Sprintf(w["measured"], r.Began.Format(time.RFC3339), r.Ended.Format(time.RFC3339), r.Howdah)
	v.Columns, v.Rows = table(r)
	for _, p := range plots {
		note := w["whiskers"]
		if strings.HasPrefix(p.Name, "seconds-") {
			note = w["first"]
		} else if strings.HasPrefix(p.Name, "ratio-") {
			note = w["pairs"]
		}
		_, svg, _ := strings.Cut(string(p.SVG), "<svg")
		v.Plots = append(v.Plots, plotView{Name: p.Name, Note: note, SVG: template.HTML("<svg" + svg)}) //nolint:gosec // the library wrote it
	}
	for _, name := range slices.Sorted(maps.Keys(r.Target.Parameters)) {
		v.Parameters = append(v.Parameters, [2]string{name, r.Target.Parameters[name]})
	}
	return v
}

// findings says what each comparison carries, and what it does not.
func findings(r *result.Result, e *experiment.Experiment, language string) (all []string) {
	levels := map[string]map[string]any{}
	for _, s := range r.Settings {
		levels[s.Setting] = s.Levels
	}
	for _, c := range r.Comparisons {
		base, other := nameOf(e, levels[c.Base]), nameOf(e, levels[c.Other])
		if !c.Figures.Carried {
			all = append(all, fmt.Sprintf(word(language, "open"), c.Figure, other, base, c.Figures.Why))
			continue
		}
		ratio := c.Figures.Ratio
		all = append(all, fmt.Sprintf(word(language, "carried"), c.Figure, other, short(ratio.Median), base, short(ratio.Least), short(ratio.Greatest), short(c.Figures.P)))
	}
	return all
}

// table has a column for each figure, and a row for each setting.
func table(r *result.Result) (columns []string, rows []row) {
	seen := map[string]bool{}
	for _, s := range r.Settings {
		for name := range s.Figures {
			seen[name] = true
		}
	}
	columns = slices.Sorted(maps.Keys(seen))
	for _, s := range r.Settings {
		line := row{Setting: s.Setting}
		for _, name := range columns {
			f, ok := s.Figures[name]
			if !ok {
				line.Cells = append(line.Cells, cell{})
				continue
			}
			line.Runs = max(line.Runs, f.Runs)
			line.Cells = append(line.Cells, cell{Median: short(f.Median), Spread: short(f.Least) + " – " + short(f.Greatest), Unsteady: f.Unsteady()})
		}
		rows = append(rows, line)
	}
	return columns, rows
}

// commands lists what was run, each command once.
func commands(r *result.Result) (all []string) {
	for _, p := range r.Points {
		for _, c := range p.Commands {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// short is a figure for people: four digits that count, or all before the point.
func short(f float64) string {
	if f >= 1000 || f <= -1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.4g", f)
}
