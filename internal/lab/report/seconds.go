package report

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// mostLines is how many lines of seconds a reader tells apart in one plot.
const mostLines = 6

// rates are the figures that workloads tell each second.
var rates = []string{"tps", "nopm", "tpm"}

// secondsNames lists the figures of the series that plots of seconds show, by name.
func (w writer) secondsNames() []string {
	seen := map[string]bool{}
	for _, t := range w.ticks {
		for _, rate := range rates {
			if t.Name == rate || strings.HasSuffix(t.Name, "_"+rate) {
				seen[t.Name] = true
			}
		}
	}
	return inOrder(seen)
}

// track is what was seen each second of one point, from its beginning.
type track struct {
	point int
	began time.Time
	seen  plotter.XYs
}

// tracks has the first run of each setting that has seconds of a figure.
func (w writer) tracks(name string) []track {
	at := map[int]int{}
	var all []track
	for _, t := range w.ticks {
		if t.Name != name || t.Point >= len(w.r.Points) || w.r.Points[t.Point].Run != 1 {
			continue
		}
		n, there := at[t.Point]
		if !there {
			n, at[t.Point] = len(all), len(all)
			all = append(all, track{point: t.Point, began: t.At.Add(-time.Second)})
		}
		all[n].seen = append(all[n].seen, plotter.XY{X: t.At.Sub(all[n].began).Seconds(), Y: t.Value})
	}
	all = slices.DeleteFunc(all, func(t track) bool { return len(t.seen) < 2 })
	slices.SortFunc(all, func(a, b track) int { return a.point - b.point })
	return all
}

// seconds draws what was seen each second, in as many plots as it takes. Faults and other marks are
// lines from top to bottom.
func (w writer) seconds(name string) ([]Plot, error) {
	all := w.tracks(name)
	var plots []Plot
	for n := 0; n < len(all); n += mostLines {
		ending := ""
		if len(all) > mostLines {
			ending = fmt.Sprintf("-%d", n/mostLines+1)
		}
		p := newPicture("seconds-"+name+ending, "seconds")
		one := p.add(word(w.language, "seconds"), labelled(name, w.language), 1)
		for i, t := range all[n:min(len(all), n+mostLines)] {
			path, err := plotter.NewLine(t.seen)
			if err != nil {
				return nil, err
			}
			path.Color, path.Width = colour(i), vg.Points(1.3)
			one.Add(path)
			p.entry(w.nameOf(w.r.Points[t.point].Levels), path)
			for _, xy := range t.seen {
				one.Y.Max = max(one.Y.Max, xy.Y*1.08)
			}
		}
		one.Y.Min, one.X.Min = 0, 0
		most := 0 // marks so far
		for _, t := range all[n:min(len(all), n+mostLines)] {
			most += len(w.r.Points[t.point].Marks)
		}
		one.Y.Max *= 1 + markHeight*float64(min(most, markRows))
		most = 0
		for i, t := range all[n:min(len(all), n+mostLines)] {
			if err := w.marks(one, t, colour(i), most); err != nil {
				return nil, err
			}
			most += len(w.r.Points[t.point].Marks)
		}
		drawn, err := p.drawn()
		if err != nil {
			return nil, err
		}
		plots = append(plots, drawn)
	}
	return plots, nil
}

// Marks have rows of their own above the data, each so high.
const (
	markRows   = 6
	markHeight = 0.08
)

// marks draws the marks of a point, each below the one before, from a row on. Those near the right edge are at the left
// of their lines.
func (w writer) marks(to *plot.Plot, t track, c color.Color, row int) error {
	for n, m := range w.r.Points[t.point].Marks {
		x := m.At.Sub(t.began).Seconds()
		upright, err := plotter.NewLine(plotter.XYs{{X: x, Y: 0}, {X: x, Y: to.Y.Max}})
		if err != nil {
			return err
		}
		upright.Color, upright.Dashes, upright.Width = c, dashes[1], 1
		height := to.Y.Max * (1 - 0.9*markHeight*float64((row+n)%markRows))
		labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x, Y: height}}, Labels: []string{" " + m.Text + " "}})
		if err != nil {
			return err
		}
		style := &labels.TextStyle[0]
		style.Font, style.Color, style.YAlign, style.Handler = sans(8), c, draw.YTop, newHandler()
		if x > 0.6*to.X.Max {
			style.XAlign = draw.XRight
		}
		to.Add(upright, labels)
	}
	return nil
}

// quantiles are the percentiles of latencies that are drawn.
var quantiles = []string{"p50", "p90", "p95", "p99", "p99.9", "max"}

// latency draws the percentiles of latencies: by the factor that is swept, or of each setting.
func (w writer) latency(prefix string) (Plot, error) {
	p := newPicture("latency"+ending(prefix), "latency")
	label := word(w.language, "latency")
	if f := swept(w.e); f != nil && len(w.lines(*f, prefix+"latency_p50_ms")) > 0 {
		one := p.add(f.Title.In(w.language), label, 1)
		names := []string{prefix + "latency_p50_ms", prefix + "latency_p95_ms", prefix + "latency_p99_ms"}
		if err := w.sweepLines(p, one, *f, names, true); err != nil {
			return Plot{}, err
		}
		for n, name := range names {
			w.entriesOnce(p, dashes[n], title(name, w.language))
		}
		if least := w.least(names); least > 0 {
			one.Y.Min, one.Y.Max = least*0.8, one.Y.Max*1.2
			one.Y.Scale, one.Y.Tick.Marker = plot.LogScale{}, logTicks{}
		}
		return p.drawn()
	}
	one := p.add("", label, 1)
	one.NominalX(quantiles...)
	one.X.Tick.Label.Font = sans(8.5)
	one.Y.Scale, one.Y.Tick.Marker = plot.LogScale{}, logTicks{}
	one.Y.Min = 0
	drew := 0
	for _, s := range w.r.Settings {
		var found []point
		for n, q := range quantiles {
			if runs, ok := s.Figures[prefix+"latency_"+q+"_ms"]; ok && runs.Least > 0 {
				found = append(found, point{float64(n), runs})
				one.Y.Max = max(one.Y.Max, runs.Greatest*1.3)
				if one.Y.Min == 0 || runs.Least*0.8 < one.Y.Min {
					one.Y.Min = runs.Least * 0.8
				}
			}
		}
		if len(found) < 2 || drew == len(colours) {
			continue
		}
		if err := w.ladder(p, one, found, drew, w.nameOf(s.Levels)); err != nil {
			return Plot{}, err
		}
		drew++
	}
	if drew == 0 {
		return Plot{}, nil
	}
	return p.drawn()
}

// least is the least run of figures.
func (w writer) least(names []string) float64 {
	least := 0.0
	for _, s := range w.r.Settings {
		for _, name := range names {
			if f, known := s.Figures[name]; known && (least == 0 || f.Least < least) {
				least = f.Least
			}
		}
	}
	return least
}

// ladder draws the percentiles of one setting.
func (w writer) ladder(p *picture, to *plot.Plot, found []point, n int, name string) error {
	path, dots, err := plotter.NewLinePoints(whiskers(found))
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(whiskers(found))
	if err != nil {
		return err
	}
	path.Color, path.Width, dots.Color, dots.Shape, dots.Radius, bars.Color = colour(n), 1.5, colour(n), draw.CircleGlyph{}, 2.2, colour(n)
	to.Add(path, dots, bars)
	p.entry(name, path, dots)
	return nil
}

// entriesOnce tells dashes apart in the legend.
func (w writer) entriesOnce(p *picture, dash []vg.Length, name string) {
	p.entry(name, &plotter.Line{LineStyle: draw.LineStyle{Color: grey, Width: 1.5, Dashes: dash}})
}

// logTicks has 1, 2 and 5 of each power of ten.
type logTicks struct{}

func (logTicks) Ticks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for power := 1e-4; power < 1e9; power *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			if value := power * digit; value >= least && value <= most {
				ticks = append(ticks, plot.Tick{Value: value, Label: tickLabel(value)})
			}
		}
	}
	return ticks
}

// prefixes lists those of the steps that have a figure, in the order of their names.
func (w writer) prefixes(figure string) []string {
	seen := map[string]bool{}
	for _, s := range w.r.Settings {
		for name := range s.Figures {
			if before, ok := strings.CutSuffix(name, figure); ok && (before == "" || strings.HasSuffix(before, "_")) {
				seen[before] = true
			}
		}
	}
	return inOrder(seen)
}

// mainFigures are those that are compared, or the throughput where nothing is.
func (w writer) mainFigures() []string {
	var all []string
	for _, c := range w.e.Compare {
		if !slices.Contains(all, c.Figure) {
			all = append(all, c.Figure)
		}
	}
	for _, rate := range rates {
		for _, prefix := range w.prefixes(rate) {
			if len(w.e.Compare) == 0 || rate != "tpm" && !slices.Contains(all, prefix+rate) {
				all = append(all, prefix+rate)
			}
		}
	}
	return slices.Compact(all)
}

// plots draws all that there is to draw.
func (w writer) plots() (all []Plot, err error) {
	add := func(p Plot, bad error) {
		if bad != nil && err == nil {
			err = bad
		}
		if len(p.SVG) > 0 {
			all = append(all, p)
		}
	}
	f := swept(w.e)
	for _, figure := range w.mainFigures() {
		if f != nil {
			add(w.sweep(*f, figure))
		}
	}
	for _, c := range w.e.Compare {
		add(w.ratios(c))
	}
	for _, prefix := range w.prefixes("aas") {
		add(w.waits(prefix))
	}
	for _, prefix := range w.prefixes("latency_p50_ms") {
		add(w.latency(prefix))
	}
	for _, name := range w.secondsNames() {
		more, bad := w.seconds(name)
		if bad != nil && err == nil {
			err = bad
		}
		all = append(all, more...)
	}
	return all, err
}
