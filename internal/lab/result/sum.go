package result

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/stats"
)

// Sum fills in what follows from the points: the settings, and the comparisons. Points that are struck
// do not count.
func (r *Result) Sum(e *experiment.Experiment) {
	r.Settings, r.Comparisons = nil, nil
	for _, s := range e.Settings() {
		runs := map[string][]float64{}
		for _, p := range r.counted(e.Key(s)) {
			for name, figure := range p.Figures {
				runs[name] = append(runs[name], figure)
			}
		}
		figures := map[string]stats.Summary{}
		for name, all := range runs {
			figures[name] = stats.Of(all)
		}
		r.Settings = append(r.Settings, Setting{Setting: e.Key(s), Levels: s, Figures: figures})
	}
	for _, c := range e.Compare {
		r.compare(e, c)
	}
	r.judge(e)
}

// counted lists the points of a setting that count, by run.
func (r *Result) counted(key string) []Point {
	var all []Point
	for _, p := range r.Points {
		if p.Setting == key && p.Struck == "" {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Point) int { return a.Run - b.Run })
	return all
}

// compare adds a comparison of each setting with the one that has the base's level in its place.
func (r *Result) compare(e *experiment.Experiment, c experiment.Comparison) {
	for _, s := range e.Settings() {
		if experiment.Word(s[c.Factor]) == experiment.Word(c.Base) {
			continue
		}
		base := maps.Clone(s)
		base[c.Factor] = c.Base
		found, err := stats.Compare(r.pairs(e.Key(base), e.Key(s), c.Figure))
		if errors.Is(err, stats.ErrPairs) { // pairs are of the same length
			r.Problems = append(r.Problems, err.Error())
			continue
		}
		if r.Quick {
			found.Carried, found.Why = false, stats.WhyQuick
		}
		r.Comparisons = append(r.Comparisons, Comparison{Factor: c.Factor, Figure: c.Figure, Base: e.Key(base), Other: e.Key(s), Less: c.Less, Figures: found})
	}
}

// pairs returns a figure of the runs in which both settings count.
func (r *Result) pairs(base, other, figure string) (a, b []float64) {
	others := map[int]float64{}
	for _, p := range r.counted(other) {
		if f, ok := p.Figures[figure]; ok {
			others[p.Run] = f
		}
	}
	for _, p := range r.counted(base) {
		if f, ok := p.Figures[figure]; ok {
			if o, both := others[p.Run]; both {
				a, b = append(a, f), append(b, o)
			}
		}
	}
	return a, b
}

// MeasureAgain has Next return the points that are struck once more. They stay where they are.
func (r *Result) MeasureAgain() {
	for n := range r.Points {
		if p := &r.Points[n]; p.Struck != "" && !p.Again {
			p.Again, r.Ended = true, time.Time{}
		}
	}
}

// Done is how many points there are, without those in whose place another one is measured.
func (r *Result) Done() (n int) {
	for _, p := range r.Points {
		if !p.Again {
			n++
		}
	}
	return n
}

// Next returns the point that is to be measured next, or false if there is none. A point that is there
// already is not measured again, unless MeasureAgain says so: so a run goes on where it was broken off.
func (r *Result) Next(e *experiment.Experiment) (experiment.Point, bool) {
	done := map[string]bool{}
	for _, p := range r.Points {
		if !p.Again {
			done[fmt.Sprintf("%d %s", p.Run, p.Setting)] = true
		}
	}
	for _, p := range e.Points() {
		if !done[fmt.Sprintf("%d %s", p.Run, e.Key(p.Setting))] {
			return p, true
		}
	}
	return experiment.Point{}, false
}
