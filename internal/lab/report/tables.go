package report

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
)

// table has a column for each figure of a group, and a row for each setting.
type table struct {
	Title   string
	Note    string
	Columns []string
	Rows    []row
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

// tables has one table for each group of figures of each step.
func (w writer) tables() (all []table) {
	byPrefix := map[string]map[string]bool{}
	for _, s := range w.r.Settings {
		for name := range s.Figures {
			_, prefix := lookUp(name)
			if byPrefix[prefix] == nil {
				byPrefix[prefix] = map[string]bool{}
			}
			byPrefix[prefix][name] = true
		}
	}
	var prefixes []string
	for prefix := range byPrefix {
		prefixes = append(prefixes, prefix)
	}
	sort.Strings(prefixes)
	for _, prefix := range prefixes {
		for _, group := range groups {
			for own := range slices.Chunk(w.ofGroup(inOrder(byPrefix[prefix]), group), mostColumns) {
				t := w.table(own, group)
				if prefix != "" {
					t.Title += " (" + strings.TrimSuffix(prefix, "_") + ")"
				}
				all = append(all, t)
			}
		}
	}
	return all
}

// mostColumns is how many figures fit beside each other on paper.
const mostColumns = 9

// ofGroup leaves out the waits that nobody was in.
func (w writer) ofGroup(names []string, group string) (own []string) {
	for _, name := range names {
		if k, _ := lookUp(name); k.group == group && (group != "waits" || w.some(name)) {
			own = append(own, name)
		}
	}
	return own
}

func (w writer) table(own []string, group string) table {
	t := table{Title: word(w.language, "group_"+group)}
	if group == "latency" {
		t.Note = word(w.language, "closed")
	}
	for _, name := range own {
		_, prefix := lookUp(name)
		t.Columns = append(t.Columns, strings.TrimPrefix(labelled(name, w.language), strings.TrimSuffix(prefix, "_")+": "))
	}
	for _, s := range w.r.Settings {
		line := row{Setting: w.nameOf(s.Levels)}
		for _, name := range own {
			f, ok := s.Figures[name]
			if !ok {
				line.Cells = append(line.Cells, cell{})
				continue
			}
			line.Runs = max(line.Runs, f.Runs)
			c := cell{Median: short(f.Median), Unsteady: f.Unsteady() && group == "throughput"}
			if f.Least != f.Greatest {
				c.Spread = short(f.Least) + " – " + short(f.Greatest)
			}
			line.Cells = append(line.Cells, c)
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

func (w writer) some(name string) bool {
	return slices.ContainsFunc(w.r.Settings, func(s result.Setting) bool { return s.Figures[name].Greatest > 0 })
}

// steps says in words what is done, in its order. Levels are called by their factors.
func (w writer) steps() (all []string) {
	names := experiment.Setting{}
	for _, f := range w.e.Factors {
		names[f.Name] = "‹" + f.Title.In(w.language) + "›"
		if len(f.Levels) == 1 {
			names[f.Name] = f.Levels[0]
		}
	}
	for n, step := range slices.Concat(w.e.Prepare, w.e.Each) {
		form := word(w.language, "each")
		if n < len(w.e.Prepare) {
			form = word(w.language, "once")
		}
		what := word(w.language, "step_"+step.Kind())
		if what == "" {
			what = step.Kind()
		}
		filled, err := w.e.Fill(step[step.Kind()], names)
		if err == nil {
			if arguments := inWords(filled); arguments != "" {
				what += ": " + arguments
			}
		}
		all = append(all, fmt.Sprintf(form, what))
	}
	return all
}

// inWords lists arguments, by name.
func inWords(filled any) string {
	arguments, ok := filled.(map[string]any)
	if !ok {
		return ""
	}
	var parts []string
	for name, value := range arguments {
		parts = append(parts, name+" "+wordOf(value))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}

func wordOf(value any) string {
	switch v := value.(type) {
	case []any:
		var parts []string
		for _, each := range v {
			parts = append(parts, wordOf(each))
		}
		return strings.Join(parts, " + ")
	case map[string]any:
		if name, ok := v["builtin"].(string); ok {
			if weight, weighs := v["weight"]; weighs {
				return name + " × " + experiment.Word(weight)
			}
			return name
		}
		return "(" + inWords(v) + ")"
	default:
		return experiment.Word(v)
	}
}
