package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/lab/stats"
)

// Plot is a picture, in both forms.
type Plot struct {
	Name string // of its files, without the ending
	SVG  []byte
	PNG  []byte
}

const (
	plotWidth  = 18 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
)

// colours can be told apart by people who see few of them, and in print.
var colours = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{60, 60, 60, 255},
}

func colour(n int) color.Color { return colours[n%len(colours)] }

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	return p
}

// drawn is a plot in both forms.
func drawn(name string, p *plot.Plot) (Plot, error) {
	out := Plot{Name: name}
	for format, to := range map[string]*[]byte{"svg": &out.SVG, "png": &out.PNG} {
		writer, err := p.WriterTo(plotWidth, plotHeight, format)
		if err != nil {
			return out, fmt.Errorf("draw %s: %w", name, err)
		}
		var text bytes.Buffer
		if _, err := writer.WriteTo(&text); err != nil {
			return out, fmt.Errorf("draw %s: %w", name, err)
		}
		*to = text.Bytes()
	}
	return out, nil
}

// point is a median with its spread.
type point struct {
	x    float64
	runs stats.Summary
}

// line is a row of points of a sweep.
type line struct {
	name   string
	points []point
}

type whiskers []point

func (w whiskers) Len() int                { return len(w) }
func (w whiskers) XY(n int) (x, y float64) { return w[n].x, w[n].runs.Median }
func (w whiskers) YError(n int) (low, high float64) {
	return w[n].runs.Median - w[n].runs.Least, w[n].runs.Greatest - w[n].runs.Median
}

// sweep draws a figure by a factor of numbers: a line for the rest of each setting, medians with the
// least and the greatest run.
func sweep(r *result.Result, e *experiment.Experiment, f experiment.Factor, figure string) (Plot, error) {
	all := lines(r, e, f, figure)
	if len(all) == 0 {
		return Plot{}, nil
	}
	p := newPlot(f.Title.English, figure)
	var ticks []plot.Tick
	for _, level := range f.Levels {
		ticks = append(ticks, plot.Tick{Value: number(level), Label: experiment.Word(level)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	if f.Log && !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value <= 0 }) {
		p.X.Scale = plot.LogScale{}
	}
	for n, l := range all {
		path, dots, err := plotter.NewLinePoints(whiskers(l.points))
		if err != nil {
			return Plot{}, err
		}
		path.Color, path.Width, dots.Color, dots.Shape = colour(n), vg.Points(1.5), colour(n), draw.CircleGlyph{}
		bars, err := plotter.NewYErrorBars(whiskers(l.points))
		if err != nil {
			return Plot{}, err
		}
		bars.Color = colour(n)
		p.Add(path, dots, bars)
		if l.name != "" {
			p.Legend.Add(l.name, path, dots)
		}
		for _, point := range l.points {
			p.Y.Max = max(p.Y.Max, point.runs.Greatest*1.15)
		}
	}
	return drawn("sweep-"+figure, p)
}

// lines are the settings that differ in other factors, with the points of this one.
func lines(r *result.Result, e *experiment.Experiment, f experiment.Factor, figure string) (all []line) {
	at := map[string]int{}
	for _, s := range r.Settings {
		runs, ok := s.Figures[figure]
		if !ok {
			continue
		}
		name := rest(e, s.Levels, f.Name)
		n, there := at[name]
		if !there {
			n, at[name] = len(all), len(all)
			all = append(all, line{name: name})
		}
		all[n].points = append(all[n].points, point{number(s.Levels[f.Name]), runs})
	}
	for _, l := range all {
		slices.SortFunc(l.points, func(a, b point) int { return int(math.Copysign(1, a.x-b.x)) })
	}
	return all
}

// rest names the levels of a setting but for one factor.
func rest(e *experiment.Experiment, levels map[string]any, but string) string {
	text := ""
	for _, f := range e.Factors {
		if f.Name == but || len(f.Levels) < 2 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += f.Title.English + " " + experiment.Word(levels[f.Name])
	}
	return text
}

func number(level any) float64 {
	f, err := strconv.ParseFloat(experiment.Word(level), 64)
	if err != nil {
		return 0
	}
	return f
}

// ratios draws comparisons as bars, with the least and the greatest pair.
func ratios(r *result.Result, e *experiment.Experiment, c experiment.Comparison) (Plot, error) {
	p := newPlot("", fmt.Sprintf("%s, over %s", c.Figure, experiment.Word(c.Base)))
	var names []string
	var found []point
	for _, comparison := range r.Comparisons {
		if comparison.Factor != c.Factor || comparison.Figure != c.Figure {
			continue
		}
		for _, s := range r.Settings {
			if s.Setting == comparison.Other {
				names = append(names, nameOf(e, s.Levels))
			}
		}
		found = append(found, point{float64(len(found)), comparison.Figures.Ratio})
	}
	heights := make(plotter.Values, len(found))
	for n, f := range found {
		heights[n] = f.runs.Median
		p.Y.Max = max(p.Y.Max, f.runs.Greatest*1.15)
	}
	if len(found) == 0 {
		return Plot{}, nil
	}
	bars, err := plotter.NewBarChart(heights, vg.Points(28))
	if err != nil {
		return Plot{}, err
	}
	bars.Color, bars.LineStyle.Width = colour(0), 0
	spread, err := plotter.NewYErrorBars(whiskers(found))
	if err != nil {
		return Plot{}, err
	}
	one := plotter.NewFunction(func(float64) float64 { return 1 })
	one.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(bars, spread, one)
	p.NominalX(names...)
	return drawn("ratio-"+c.Factor+"-"+c.Figure, p)
}

// nameOf names the levels of a setting that vary.
func nameOf(e *experiment.Experiment, levels map[string]any) string { return rest(e, levels, "") }

// seconds draws what was seen each second of the runs of the settings, from the beginning of each.
func seconds(r *result.Result, e *experiment.Experiment, ticks []result.Tick, name string) (Plot, error) {
	p := newPlot("s", name)
	byPoint := map[int]plotter.XYs{}
	begin := map[int]time.Time{}
	for _, t := range ticks {
		if t.Name != name || t.Point >= len(r.Points) || r.Points[t.Point].Run != 1 {
			continue
		}
		if _, there := begin[t.Point]; !there {
			begin[t.Point] = t.At
		}
		byPoint[t.Point] = append(byPoint[t.Point], plotter.XY{X: t.At.Sub(begin[t.Point]).Seconds() + 1, Y: t.Value})
	}
	drew := 0
	for n, point := range r.Points {
		if len(byPoint[n]) < 2 {
			continue
		}
		path, err := plotter.NewLine(byPoint[n])
		if err != nil {
			return Plot{}, err
		}
		path.Color, path.Width = colour(drew), vg.Points(1.2)
		p.Add(path)
		p.Legend.Add(nameOf(e, point.Levels), path)
		drew++
	}
	if drew == 0 {
		return Plot{}, nil
	}
	p.Y.Max *= 1.3
	p.Y.Min = 0
	return drawn("seconds-"+name, p)
}
