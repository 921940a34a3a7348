// Package report writes what an experiment found as a page that opens offline, and prints well: the
// findings, what limited each setting, plots, tables, what was measured and how, and all that failed.
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

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
)

var (
	//go:embed page.html
	pageText string
	//go:embed compare.html
	compareText string
	//go:embed style.css
	styleText string

	page        = template.Must(template.New("page").Parse(pageText))
	comparePage = template.Must(template.New("compare").Parse(compareText))
)

// FileName returns the name of the report in a language.
func FileName(language string) string {
	if language == "en" {
		return "report.html"
	}
	return "report." + language + ".html"
}

// writer writes one result in one language.
type writer struct {
	r        *result.Result
	e        *experiment.Experiment
	ticks    []result.Tick
	language string
}

// open reads a result, to be written in English.
func open(dir string) (writer, error) {
	r, err := result.Read(dir)
	if err != nil {
		return writer{}, err
	}
	e, err := Experiment(r)
	if err != nil {
		return writer{}, err
	}
	ticks, err := result.ReadSeries(dir)
	if err != nil {
		return writer{}, err
	}
	return writer{r: r, e: e, ticks: ticks, language: "en"}, nil
}

func (w writer) in(language string) writer { w.language = language; return w }

// Write writes the reports of a result into its directory, and its plots beside them. The plots that are
// files of their own are labelled in English.
func Write(dir string, languages ...string) error {
	w, err := open(dir)
	if err != nil {
		return err
	}
	plots, err := w.plots()
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, p := range plots {
		files[p.Name+".svg"], files[p.Name+".png"] = p.SVG, p.PNG
	}
	for _, language := range languages {
		own := plots
		if language != "en" {
			if own, err = w.in(language).plots(); err != nil {
				return err
			}
		}
		var text strings.Builder
		if err := page.Execute(&text, w.in(language).view(own)); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		files[FileName(language)] = []byte(text.String())
	}
	return writeAll(dir, files)
}

func writeAll(dir string, files map[string][]byte) error {
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
