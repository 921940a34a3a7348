package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"howdah/internal/failover/postmortem"
	"howdah/internal/lab/result"
	"howdah/internal/lab/stats"
)

// pageView is what the page shows.
type pageView struct {
	W                    map[string]string
	Style                template.CSS
	Title, Question      string
	Quick                bool
	Measured, Unfinished string
	Findings             []finding
	Chance               string
	Knees                []string
	Faults               []faultView
	Limits               []limitView
	Plots                []plotView
	Tables               []table
	Runs                 []runView
	Steps                []string
	Order                string
	Commands             []string
	Problems             []string
	Environment          [][2]string
	Settings             [][3]string
	Source               string
}

// finding is a sentence, and whether the runs carry it.
type finding struct {
	Text    string
	Carried bool
}

// faultView is a fault of one run: what shows that it took place, that it is over, and which failovers it
// led to.
type faultView struct {
	Setting, Kind, Proof, Healed string
	Run                          int
	Failovers                    []string
}

// faults lists the faults of all runs.
func (w writer) faults() (all []faultView) {
	for _, p := range w.r.Points {
		for _, f := range p.Faults {
			v := faultView{Setting: w.nameOf(p.Levels), Run: p.Run, Kind: f.Kind, Proof: f.Proof, Healed: f.Healed}
			for _, r := range f.Postmortems {
				v.Failovers = append(v.Failovers, w.failover(r))
			}
			all = append(all, v)
		}
	}
	return all
}

func (w writer) failover(r postmortem.Record) string {
	took := word(w.language, "not_seen")
	if outage := r.Outage(); outage > 0 {
		took = fmt.Sprintf("%.2f s", outage.Seconds())
	}
	return fmt.Sprintf(word(w.language, "failover"), r.From, r.FromHost, r.To, r.ToHost, r.Cause, took)
}

type plotView struct {
	Name, Title, Note string
	SVG               template.HTML
}

// runView is one point, in the order in which they were made.
type runView struct {
	Number        int
	Setting       string
	Run           int
	Began         string
	Took, Figure  string
	Struck, Marks string
}

func (w writer) view(plots []Plot) pageView {
	v := pageView{
		W: words[w.language], Style: template.CSS(styleText), Title: w.e.Title.In(w.language), Question: w.e.Question.In(w.language), Quick: w.r.Quick, //nolint:gosec // it is ours
		Findings: w.findings(), Chance: w.chance(), Knees: w.knees(), Faults: w.faults(), Limits: w.limits(), Tables: w.tables(), Runs: w.runs(), Steps: w.steps(), Commands: w.commands(),
		Order: w.order(), Problems: w.problems(), Source: w.r.Source,
	}
	v.Environment, v.Settings = w.environment()
	if w.r.Ended.IsZero() {
		v.Unfinished = word(w.language, "unfinished")
		v.Measured = fmt.Sprintf(word(w.language, "measuring"), moment(w.r.Began), w.r.Howdah)
	} else {
		v.Measured = fmt.Sprintf(word(w.language, "measured"), moment(w.r.Began), moment(w.r.Ended), w.r.Howdah)
	}
	v.Plots = w.plotViews(plots)
	return v
}

// order says in which order the runs were made, and when that was broken.
func (w writer) order() string {
	text := fmt.Sprintf(word(w.language, "order"), w.e.Runs)
	var moments []string
	for _, t := range w.r.Resumed {
		moments = append(moments, moment(t))
	}
	if len(moments) > 0 {
		text += " " + fmt.Sprintf(word(w.language, "resumed"), strings.Join(moments, ", "))
	}
	return text
}

func (w writer) plotViews(plots []Plot) (all []plotView) {
	for _, p := range plots {
		v := plotView{Name: p.Name, Title: w.plotTitle(p), Note: word(w.language, "note_"+p.Kind)}
		v.SVG = template.HTML(inline(p.SVG, template.HTMLEscapeString(v.Title))) //nolint:gosec // the library wrote it
		all = append(all, v)
	}
	return all
}

// plotTitle says what a plot shows.
func (w writer) plotTitle(p Plot) string {
	form := word(w.language, "title_"+p.Kind)
	if !strings.Contains(form, "%s") {
		return form
	}
	name := strings.TrimPrefix(p.Name, p.Kind+"-")
	if p.Kind == "ratio" {
		for _, c := range w.e.Compare {
			if name == c.Factor+"-"+c.Figure {
				name = c.Figure
			}
		}
	}
	if p.Kind == "seconds" {
		for _, each := range w.secondsNames() {
			if strings.HasPrefix(name, each) {
				name = each
			}
		}
	}
	return fmt.Sprintf(form, title(name, w.language))
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// findings says what each comparison carries, and what it does not.
func (w writer) findings() (all []finding) {
	for _, c := range w.r.Comparisons {
		base, other, figure := w.settingName(c.Base), w.settingName(c.Other), unitOr(c.Figure, w.language)
		if !c.Figures.Carried {
			all = append(all, finding{Text: fmt.Sprintf(word(w.language, "open"), figure, other, base, w.why(c.Figures))})
			continue
		}
		ratio := c.Figures.Ratio
		if c.Figures.Base.Least <= 0 { // a ratio to nothing is none
			all = append(all, finding{Text: fmt.Sprintf(word(w.language, "carried_sides"), figure, other, short(c.Figures.Other.Median), base, short(c.Figures.Base.Median), short(c.Figures.P)), Carried: true})
			continue
		}
		form := "carried"
		if c.Factor == resultFactor { // there are no rounds of both
			form = "carried_beside"
		}
		all = append(all, finding{
			Text:    fmt.Sprintf(word(w.language, form), figure, other, short(ratio.Median), base, short(ratio.Least), short(ratio.Greatest), short(c.Figures.P)),
			Carried: true,
		})
	}
	return all
}

// chance says how many differences would be carried if there were none at all; "": that is no question.
func (w writer) chance() string {
	expected := 0.0
	for _, c := range w.r.Comparisons {
		expected += stats.ByChance(min(c.Figures.Base.Runs, c.Figures.Other.Runs))
	}
	if len(w.r.Comparisons) < 2 || w.r.Quick || expected == 0 {
		return ""
	}
	return fmt.Sprintf(word(w.language, "chance"), len(w.r.Comparisons), fmt.Sprintf("%.2g", expected))
}

// why says why a comparison carries nothing.
func (w writer) why(c stats.Comparison) string {
	switch {
	case w.language == "en":
		return c.Why
	case c.Why == stats.WhyQuick:
		return word(w.language, "why_quick")
	case c.Base.Runs < stats.FewestRuns:
		return fmt.Sprintf(word(w.language, "few"), c.Base.Runs, stats.FewestRuns)
	default:
		return fmt.Sprintf(word(w.language, "overlap"), short(c.Base.Least), short(c.Base.Greatest), short(c.Other.Least), short(c.Other.Greatest))
	}
}

// runs lists the points in the order in which they were made.
func (w writer) runs() (all []runView) {
	main := w.mainFigures()
	for n, p := range w.r.Points {
		v := runView{Number: n + 1, Setting: w.nameOf(p.Levels), Run: p.Run, Began: p.Began.UTC().Format("15:04:05"), Took: fmt.Sprintf("%.1f", p.Took), Struck: p.Struck}
		if len(main) > 0 {
			if value, known := p.Figures[main[0]]; known {
				v.Figure = short(value) + " " + unitOr(main[0], w.language)
			}
		}
		var marks []string
		for _, m := range p.Marks {
			marks = append(marks, m.At.UTC().Format("15:04:05")+" "+m.Text)
		}
		v.Marks = strings.Join(marks, "; ")
		all = append(all, v)
	}
	return all
}

// commands lists what was run, each command once.
func (w writer) commands() (all []string) {
	for _, p := range w.r.Points {
		for _, c := range p.Commands {
			if c = withoutPrefix(c); !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// withoutPrefix leaves out where a run kept its times: it is another place each time.
func withoutPrefix(command string) string {
	before, rest, found := strings.Cut(command, " --log-prefix=")
	if !found {
		return command
	}
	_, after, _ := strings.Cut(rest, " ")
	return before + " " + after
}

// problems lists all that failed: points, transactions, and what could not be observed.
func (w writer) problems() []string {
	all := slices.Clone(w.r.Problems)
	for _, p := range w.r.Points {
		where := fmt.Sprintf(word(w.language, "where"), w.pointName(p))
		for _, text := range p.Errors {
			all = append(all, where+": "+text)
		}
		for _, o := range p.Observed {
			if o.Failed != "" {
				all = append(all, where+": "+fmt.Sprintf(word(w.language, "unobserved"), o.Failed))
			}
		}
	}
	return all
}

func (w writer) pointName(p result.Point) string {
	return strings.TrimPrefix(w.nameOf(p.Levels)+", "+fmt.Sprintf(word(w.language, "run_n"), p.Run), ", ")
}

// short is a figure for people: four digits that count, or all before the point.
func short(f float64) string {
	if f >= 1000 || f <= -1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.4g", f)
}
