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
		if t.Name != name || t.Point < 0 || t.Point >= len(w.r.Points) || w.r.Points[t.Point].Run != 1 || w.r.Points[t.Point].Again {
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
