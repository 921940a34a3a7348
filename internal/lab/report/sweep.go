package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/lab/stats"
	"howdah/internal/lab/verdict"
)

// point is a median with its spread.
type point struct {
	x    float64
	runs stats.Summary
	// hollow: what limits it is the load generator, so that it is no figure of the server.
	hollow bool
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

// sweep draws a figure by a factor of numbers: a line for the rest of each setting, medians with the
// least and the greatest run. Below it are the CPU and the operations of the disks.
func (w writer) sweep(f experiment.Factor, figure string) (Plot, error) {
	p := newPicture("sweep-"+figure, "sweep")
	if len(w.lines(f, figure)) == 0 {
		return Plot{}, nil
	}
	_, prefix := lookUp(figure)
	below := [][]string{{prefix + "server_cpu_percent"}, {prefix + "write_iops", prefix + "read_iops"}}
	top := p.add("", labelled(figure, w.language), 2)
	if err := w.sweepLines(p, top, f, []string{figure}, true); err != nil {
		return Plot{}, err
	}
	for _, names := range below {
		if len(w.lines(f, names[0])) == 0 {
			continue
		}
		label := labelled(names[0], w.language)
		if len(names) > 1 {
			label = "IOPS"
		}
		one := p.add("", label, 1)
		if err := w.sweepLines(p, one, f, names, false); err != nil {
			return Plot{}, err
		}
		p.height += plotHeight / 3
		if strings.HasSuffix(names[0], "percent") {
			one.Y.Max = 100
		}
	}
	if len(p.panels) > 2 { // the last one tells writes from reads
		for n, name := range below[1] {
			sample := plotter.Line{LineStyle: draw.LineStyle{Color: grey, Width: 1.5, Dashes: dashes[n]}}
			p.entry(title(name, w.language), &sample)
		}
	}
	p.panels[len(p.panels)-1].X.Label.Text = f.Title.In(w.language)
	return p.drawn()
}

// sweepLines draws lines of figures: a colour for each rest of a setting, and dashes for each figure.
func (w writer) sweepLines(p *picture, to *plot.Plot, f experiment.Factor, figures []string, named bool) error {
	levels(to, f)
	for dash, figure := range figures {
		for n, l := range w.lines(f, figure) {
			path, dots, err := plotter.NewLinePoints(whiskers(l.points))
			if err != nil {
				return err
			}
			path.Color, path.Width, path.Dashes = colour(n), vg.Points(1.5), dashes[dash]
			dots.Color, dots.Shape, dots.Radius = colour(n), draw.CircleGlyph{}, 2.2
			full := dots.GlyphStyle
			dots.GlyphStyleFunc = func(at int) draw.GlyphStyle { return l.points[at].glyph(full) }
			bars, err := plotter.NewYErrorBars(whiskers(l.points))
			if err != nil {
				return err
			}
			bars.Color, bars.CapWidth = colour(n), 5
			to.Add(path, dots, bars)
			if named && dash == 0 {
				p.entry(l.name, path, dots)
			}
			for _, point := range l.points {
				to.Y.Max = max(to.Y.Max, point.runs.Greatest*1.08)
			}
		}
	}
	if to.Y.Max == 0 {
		to.Y.Max = 1
	}
	return nil
}

// glyph is how a point is drawn where others are full.
func (p point) glyph(full draw.GlyphStyle) draw.GlyphStyle {
	if p.hollow {
		full.Shape, full.Radius = draw.RingGlyph{}, full.Radius+1
	}
	return full
}

// levels has the axis below show the levels of a factor.
func levels(to *plot.Plot, f experiment.Factor) {
	var ticks []plot.Tick
	for _, level := range f.Levels {
		ticks = append(ticks, plot.Tick{Value: number(level), Label: experiment.Word(level)})
	}
	to.X.Tick.Marker = plot.ConstantTicks(ticks)
	if f.Log && !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value <= 0 }) {
		to.X.Scale = plot.LogScale{}
	}
}

// lines are the settings that differ in other factors, with the points of this one.
func (w writer) lines(f experiment.Factor, figure string) (all []line) {
	at := map[string]int{}
	_, prefix := lookUp(figure)
	for _, s := range w.r.Settings {
		runs, ok := s.Figures[figure]
		if !ok {
			continue
		}
		name := w.rest(s.Levels, f.Name)
		n, there := at[name]
		if !there {
			n, at[name] = len(all), len(all)
			all = append(all, line{name: name})
		}
		all[n].points = append(all[n].points, point{number(s.Levels[f.Name]), runs, byClient(s, prefix)})
	}
	for _, l := range all {
		slices.SortFunc(l.points, func(a, b point) int { return int(math.Copysign(1, a.x-b.x)) })
	}
	return all
}

// byClient reports whether the load generator limits a step of a setting.
func byClient(s result.Setting, prefix string) bool {
	return slices.ContainsFunc(s.Limits, func(l result.Limit) bool { return l.Prefix == prefix && l.Cause == verdict.Client })
}

// rest names the levels of a setting but for one factor.
func (w writer) rest(levels map[string]any, but string) string {
	var all []string
	for _, f := range w.e.Factors {
		if f.Name != but && len(f.Levels) > 1 {
			all = append(all, f.Title.In(w.language)+" "+experiment.Word(levels[f.Name]))
		}
	}
	return strings.Join(all, ", ")
}

// nameOf names the levels of a setting that vary.
func (w writer) nameOf(levels map[string]any) string { return w.rest(levels, "") }

func number(level any) float64 {
	f, err := strconv.ParseFloat(experiment.Word(level), 64)
	if err != nil {
		return 0
	}
	return f
}
