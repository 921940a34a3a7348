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
		if err := w.addSeconds(p, labelled(name, w.language), all[n:min(len(all), n+mostLines)]); err != nil {
			return nil, err
		}
		drawn, err := p.drawn()
		if err != nil {
			return nil, err
		}
		plots = append(plots, drawn)
	}
	return plots, nil
}

// Marks have rows of their own above the data, each so high. A panel of one setting is so high that
// several on a page can be read.
const (
	markRows    = 6
	markHeight  = 0.08
	panelHeight = 5.5 * vg.Centimeter
)

// addSeconds adds all to one panel. Where there are more marks than rows, nobody could read them: each
// setting has a panel of its own then.
func (w writer) addSeconds(p *picture, label string, all []track) error {
	marks := 0
	for _, t := range all {
		marks += len(w.r.Points[t.point].Marks)
	}
	if marks <= markRows || len(all) == 1 {
		return w.panelOf(p, word(w.language, "seconds"), label, all, 0)
	}
	p.height = max(plotHeight, vg.Length(len(all))*panelHeight)
	for i, t := range all {
		below := ""
		if i == len(all)-1 {
			below = word(w.language, "seconds")
		}
		if err := w.panelOf(p, below, label, []track{t}, i); err != nil {
			return err
		}
	}
	right := 0.0
	for _, one := range p.panels {
		right = max(right, one.X.Max)
	}
	for _, one := range p.panels {
		one.X.Max = right
	}
	return nil
}

// panelOf adds a panel with a line for each setting. first is the number of the first one's colour.
func (w writer) panelOf(p *picture, x, y string, all []track, first int) error {
	one := p.add(x, y, 1)
	marks := 0
	for i, t := range all {
		path, err := plotter.NewLine(t.seen)
		if err != nil {
			return err
		}
		path.Color, path.Width = colour(first+i), vg.Points(1.3)
		one.Add(path)
		p.entry(w.nameOf(w.r.Points[t.point].Levels), path)
		for _, xy := range t.seen {
			one.Y.Max = max(one.Y.Max, xy.Y*1.08)
		}
		marks += len(w.r.Points[t.point].Marks)
	}
	one.Y.Min, one.X.Min = 0, 0
	one.Y.Max *= 1 + markHeight*float64(min(marks, markRows))
	row := 0
	for i, t := range all {
		if err := w.marks(one, t, colour(first+i), row); err != nil {
			return err
		}
		row += len(w.r.Points[t.point].Marks)
	}
	return nil
}

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
