package report

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
)

// Bars lie: the names of settings are long.
const (
	barWidth = 13
	barRoom  = 26 // of each bar, with what is between
	barRest  = 62 // the axis below
)

func lying(p *picture, names []string) {
	slices.Reverse(names)
	one := p.panels[0]
	one.NominalY(names...)
	one.Y.Min, one.Y.Max = -0.6, float64(len(names))-0.4
	one.Y.Tick.Label.Font, one.Y.Padding = sans(8.5), 4
	one.X.Tick.Marker = readable{}
	one.X.Min = 0
	p.height = vg.Length(barRest + barRoom*len(names))
}

// acrossGrid has lines from the axis below, and none from the names.
func acrossGrid() *plotter.Grid {
	grid := plotter.NewGrid()
	grid.Horizontal.Width = 0
	grid.Vertical.Color = lightGrey
	return grid
}

type pairs []point

func (p pairs) Len() int                { return len(p) }
func (p pairs) XY(n int) (x, y float64) { return p[n].runs.Median, p[n].x }
func (p pairs) XError(n int) (low, high float64) {
	return p[n].runs.Median - p[n].runs.Least, p[n].runs.Greatest - p[n].runs.Median
}

// ratios draws comparisons as bars, with the least and the greatest pair.
func (w writer) ratios(c experiment.Comparison) (Plot, error) {
	var names []string
	var found []point
	for _, comparison := range w.r.Comparisons {
		if comparison.Factor == c.Factor && comparison.Figure == c.Figure && comparison.Figures.Ratio.Runs > 0 {
			names = append(names, w.settingName(comparison.Other))
			found = append(found, point{runs: comparison.Figures.Ratio})
		}
	}
	if len(found) == 0 {
		return Plot{}, nil
	}
	p := newPicture("ratio-"+c.Factor+"-"+c.Figure, "ratio")
	one := p.add(fmt.Sprintf(word(w.language, "over"), unitOr(c.Figure, w.language), w.factorTitle(c.Factor)+" "+experiment.Word(c.Base)), "", 1)
	one.Add(acrossGrid())
	slices.Reverse(found)
	heights := make(plotter.Values, len(found))
	for n := range found {
		found[n].x = float64(n)
		heights[n] = found[n].runs.Median
		one.X.Max = max(one.X.Max, found[n].runs.Greatest*1.08, 1.1)
	}
	bars, err := plotter.NewBarChart(heights, barWidth)
	if err != nil {
		return Plot{}, err
	}
	bars.Color, bars.LineStyle.Width, bars.Horizontal = color.RGBA{140, 170, 200, 255}, 0, true
	spread, err := plotter.NewXErrorBars(pairs(found))
	if err != nil {
		return Plot{}, err
	}
	unity, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.6}, {X: 1, Y: float64(len(found)) - 0.4}})
	if err != nil {
		return Plot{}, err
	}
	unity.Dashes, unity.Color = dashes[1], grey
	one.Add(bars, spread, unity)
	lying(p, names)
	return p.drawn()
}

// classes are the classes of waits, each with a colour of its own.
var classes = []struct {
	name   string
	colour color.Color
}{
	{"cpu", color.RGBA{0, 158, 115, 255}},
	{"io", color.RGBA{0, 114, 178, 255}},
	{"wal", color.RGBA{86, 180, 233, 255}},
	{"lock", color.RGBA{213, 94, 0, 255}},
	{"lwlock", color.RGBA{204, 121, 167, 255}},
	{"ipc", color.RGBA{230, 159, 0, 255}},
	{"client", color.RGBA{240, 228, 66, 255}},
	{"timeout", color.RGBA{170, 170, 170, 255}},
	{"other", color.RGBA{60, 60, 60, 255}},
}

// waits draws what the active sessions of each setting did.
func (w writer) waits(prefix string) (Plot, error) {
	var names []string
	var seen []result.Setting
	for _, s := range w.r.Settings {
		if _, known := s.Figures[prefix+"aas"]; known {
			names = append(names, w.nameOf(s.Levels))
			seen = append(seen, s)
		}
	}
	if len(seen) == 0 {
		return Plot{}, nil
	}
	slices.Reverse(seen)
	p := newPicture("waits"+ending(prefix), "waits")
	one := p.add(word(w.language, "sessions"), "", 1)
	one.Add(acrossGrid())
	var below *plotter.BarChart
	sums := make([]float64, len(seen))
	for _, class := range classes {
		values := make(plotter.Values, len(seen))
		some := false
		for n, s := range seen {
			values[n] = s.Figures[prefix+"aas_"+class.name].Median
			sums[n] += values[n]
			some = some || values[n] > 0
			one.X.Max = max(one.X.Max, sums[n]*1.05)
		}
		if !some {
			continue
		}
		bars, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return Plot{}, err
		}
		bars.Color, bars.LineStyle.Width, bars.Horizontal = class.colour, 0, true
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		one.Add(bars)
		p.entry(title("aas_"+class.name, w.language), bars)
	}
	if below == nil {
		return Plot{}, nil
	}
	lying(p, names)
	p.height = max(p.height, vg.Length(16*p.entries+14))
	return p.drawn()
}

// ending makes a part of a file's name of a step's prefix.
func ending(prefix string) string {
	if prefix == "" {
		return ""
	}
	return "-" + prefix[:len(prefix)-1]
}

func (w writer) settingName(key string) string {
	for _, s := range w.r.Settings {
		if s.Setting == key {
			return w.nameOf(s.Levels)
		}
	}
	return key
}

func (w writer) factorTitle(name string) string {
	for _, f := range w.e.Factors {
		if f.Name == name {
			return f.Title.In(w.language)
		}
	}
	return name
}
