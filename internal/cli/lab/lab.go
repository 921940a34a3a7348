// Package lab has the commands of the verification lab: they measure a PostgreSQL server, and write the
// report.
package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/report"
	"howdah/internal/lab/result"
	"howdah/internal/lab/run"
)

// Commands returns the commands of the lab.
func Commands(o *cli.Options) []*cobra.Command {
	cmd := &cobra.Command{
		Use: "lab", Short: "Measure a PostgreSQL server, and write the report",
		Long: "The lab makes experiments: each varies something, measures each setting at least three times in turns, and writes a report " +
			"that says what the figures carry, and what not. `howdah lab list` shows those that are built in. An experiment is a small file, " +
			"so write your own.",
	}
	cmd.AddCommand(newList(o), newShow(o), newRun(o), newWatch(o), newResume(o), newReport(o), newCompare(o))
	return []*cobra.Command{cmd}
}

// listed is an experiment in a list.
type listed struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Question string `json:"question"`
	Points   int    `json:"points"`
	Quick    int    `json:"points_quick"`
}

func newList(o *cli.Options) *cobra.Command {
	var runs bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the experiments that are built in, or the runs that there are", Args: cli.Args(cobra.NoArgs), Aliases: []string{"ls"},
		Example: "  howdah lab list\n  howdah lab list --runs",
		RunE: func(*cobra.Command, []string) error {
			if runs {
				return listRuns(o)
			}
			return listExperiments(o)
		},
	}
	cmd.Flags().BoolVar(&runs, "runs", false, "list the runs of this home: those that go on, and those that have ended or were broken off")
	return cmd
}

func listExperiments(o *cli.Options) error {
	all, err := experiment.BuiltIn()
	if err != nil {
		return err
	}
	var list []listed
	for _, e := range all {
		list = append(list, listed{Name: e.Name, Title: e.Title.English, Question: e.Question.English, Points: len(e.Points()), Quick: len(e.Quickly().Points())})
	}
	return o.Print(list, func() error {
		var t screen.Table
		t.Head("NAME", "TITLE", "RUNS", "QUICK", "QUESTION")
		for _, e := range list {
			t.Row(e.Name, e.Title, strconv.Itoa(e.Points), strconv.Itoa(e.Quick), e.Question)
		}
		return t.Write(o.Screen.Stdout, o.Screen.Color())
	})
}

func newShow(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME|FILE", Short: "Show an experiment: its file", Args: cli.OneName, ValidArgsFunction: complete,
		Example: "  howdah lab show e3 > mine.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			text, e, err := find(args[0])
			if err != nil {
				return err
			}
			return o.Print(e, func() error { _, err := o.Screen.Stdout.Write(text); return err })
		},
	}
}

func newReport(o *cli.Options) *cobra.Command {
	var language string
	cmd := &cobra.Command{
		Use: "report DIR", Short: "Write the report of a run anew, also of one that is not finished", Args: cli.OneName,
		Example: "  howdah lab report lab/e3 --lang both",
		RunE: func(_ *cobra.Command, args []string) error {
			languages, err := languagesOf(language)
			if err != nil {
				return err
			}
			if err := writeReport(args[0], languages); err != nil {
				return err
			}
			return tellReports(o, args[0], languages)
		},
	}
	cmd.Flags().StringVar(&language, "lang", "both", "language of the report: en, ja or both")
	return cmd
}

// writeReport writes a report anew. While the run goes on, only the run writes there.
func writeReport(dir string, languages []string) error {
	if _, err := result.Read(dir); err != nil {
		return err
	}
	unlock, err := run.Lock(dir)
	if err != nil {
		return fmt.Errorf("%w: its report is written when it ends", err)
	}
	defer unlock()
	r, err := result.Read(dir) // as it is now that nobody writes it
	if err != nil {
		return err
	}
	e, err := report.Experiment(r)
	if err != nil {
		return err
	}
	if r.Ended.IsZero() {
		r.Sum(e)
		if err := result.Write(dir, r); err != nil {
			return err
		}
	}
	return report.Write(dir, languages...)
}

func tellReports(o *cli.Options, dir string, languages []string) error {
	var paths []string
	for _, l := range languages {
		paths = append(paths, filepath.Join(dir, report.FileName(l)))
	}
	return o.Print(map[string]any{"reports": paths}, func() error {
		o.Say("%s", strings.Join(paths, "\n"))
		return nil
	})
}

func languagesOf(text string) ([]string, error) {
	switch text {
	case "both":
		return report.Languages, nil
	case "en", "ja":
		return []string{text}, nil
	}
	return nil, fmt.Errorf("--lang is en, ja or both, not %q: %w", text, cli.ErrUsage)
}

// mostFile bounds a file with an experiment, in bytes.
const mostFile = 1 << 20

// errName says that there is no such experiment.
var errName = errors.New("there is no experiment of that name: see howdah lab list, or give the path of a file")

// find returns an experiment that is built in, or in a file.
func find(name string) (text []byte, e *experiment.Experiment, err error) {
	if text, err = experiment.Source(name); err == nil {
		e, err = experiment.Read(text)
		return text, e, err
	}
	info, err := os.Stat(name)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s: %w", name, errName)
	case info.Size() > mostFile:
		return nil, nil, fmt.Errorf("%s: %w: it is larger than %s", name, experiment.ErrForm, screen.Bytes(mostFile))
	}
	if text, err = os.ReadFile(name); err != nil {
		return nil, nil, fmt.Errorf("read the experiment: %w", err)
	}
	if e, err = experiment.Read(text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, e, nil
}

// isFile reports whether a name is that of a file, and not of an experiment that is built in.
func isFile(name string) bool {
	_, err := experiment.Source(name)
	return err != nil
}

func complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := experiment.BuiltIn()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name+"\t"+e.Title.English)
	}
	return names, cobra.ShellCompDirectiveDefault
}

// span is a time for people.
func span(d time.Duration) string { return screen.Span(d) }
