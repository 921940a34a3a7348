package report

import (
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"howdah/internal/lab/experiment"
)

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
				found = append(found, point{x: float64(n), runs: runs})
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

// kinds are the transactions of TPC-C.
var kinds = []string{"new_order", "payment", "order_status", "delivery", "stock_level"}

// transactions draws a percentile of each kind of TPC-C's transactions: a colour for each, and dashes for
// each rest of a setting.
func (w writer) transactions(f experiment.Factor, prefix string) (Plot, error) {
	p := newPicture("transactions"+ending(prefix), "transactions")
	one := p.add(f.Title.In(w.language), "p95 (ms)", 1)
	var rests []string
	for n, kind := range kinds {
		for dash, l := range w.lines(f, prefix+kind+"_p95_ms") {
			path, dots, err := plotter.NewLinePoints(whiskers(l.points))
			if err != nil {
				return Plot{}, err
			}
			path.Color, path.Width, path.Dashes = colour(n), 1.5, dashes[dash%len(dashes)]
			dots.Color, dots.Shape, dots.Radius = colour(n), draw.CircleGlyph{}, 2.2
			one.Add(path, dots)
			if dash == 0 {
				p.entry(strings.TrimSuffix(title(kind+"_p95_ms", w.language), " p95"), path, dots)
			}
			if n == 0 {
				rests = append(rests, l.name)
			}
			for _, point := range l.points {
				one.Y.Max = max(one.Y.Max, point.runs.Median*1.08)
			}
		}
	}
	for n, name := range rests {
		w.entriesOnce(p, dashes[n%len(dashes)], name)
	}
	levels(one, f)
	return p.drawn()
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
