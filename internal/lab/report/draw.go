package report

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is a picture, in both forms.
type Plot struct {
	Name string // of its files, without the ending
	Kind string // sweep, ratio, seconds, latency or waits: what its caption says
	SVG  []byte
	PNG  []byte
}

const (
	plotWidth  = 18 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
	gap        = 8 // points between parts of a picture
	dpi        = 160
)

// colours can be told apart by people who see few of them, and in print.
var colours = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{60, 60, 60, 255},
}

var (
	grey      = color.RGBA{110, 110, 110, 255}
	lightGrey = color.RGBA{225, 225, 225, 255}
)

func colour(n int) color.Color { return colours[n%len(colours)] }

// dashes tell lines apart that have one colour.
var dashes = [][]vg.Length{nil, {5, 3}, {1.5, 2.5}, {6, 2, 1.5, 2}}

// panel is one of the plots of a picture, one above the other.
type panel struct {
	*plot.Plot
	height float64 // over that of the first one
}

// picture is panels that share the horizontal axis, with a legend at their right.
type picture struct {
	name, kind string
	panels     []panel
	legend     plot.Legend
	entries    int
	height     vg.Length
}

// outside are letters that no name of a file has here: a result may come from anybody.
var outside = regexp.MustCompile(`[^a-zA-Z0-9_.-]+`)

func newPicture(name, kind string) *picture {
	p := &picture{name: outside.ReplaceAllString(name, "_"), kind: kind, legend: plot.NewLegend(), height: plotHeight}
	p.legend.TextStyle.Font, p.legend.TextStyle.Handler = sans(8.5), newHandler()
	p.legend.Top, p.legend.Left, p.legend.Padding, p.legend.ThumbnailWidth = true, true, 3, 16
	return p
}

func (p *picture) entry(name string, thumbs ...plot.Thumbnailer) {
	if name != "" {
		p.legend.Add(name, thumbs...)
		p.entries++
	}
}

// add adds a panel below those that are there.
func (p *picture) add(x, y string, height float64) *plot.Plot {
	one := newPlot(x, y)
	p.panels = append(p.panels, panel{one, height})
	return one
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	handle(p)
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Y.Min = 0
	p.X.Tick.Marker, p.Y.Tick.Marker = readable{}, readable{}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = sans(9), sans(8.5)
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = grey, grey
		axis.Padding = 3
	}
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = lightGrey
	p.Add(grid)
	return p
}

// readable labels ticks with as few letters as tell them apart: 1500, and 20k.
type readable struct{}

func (readable) Ticks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for n := range ticks {
		if ticks[n].Label != "" {
			ticks[n].Label = tickLabel(ticks[n].Value)
		}
	}
	return ticks
}

func tickLabel(value float64) string {
	switch {
	case value >= 10_000_000 || value <= -10_000_000:
		return fmt.Sprintf("%.4gM", value/1e6)
	case value >= 10_000 || value <= -10_000:
		return fmt.Sprintf("%.4gk", value/1e3)
	default:
		return fmt.Sprintf("%.4g", value)
	}
}

// drawn is a picture in both forms.
func (p *picture) drawn() (Plot, error) {
	out := Plot{Name: p.name, Kind: p.kind}
	svg := vgsvg.New(plotWidth, p.height)
	p.draw(draw.New(svg))
	text, err := bytesOf(svg)
	if err != nil {
		return out, fmt.Errorf("draw %s: %w", p.name, err)
	}
	// A browser has the font, one of the same widths, or any other.
	out.SVG = bytes.ReplaceAll(fitted(text), []byte("font-family:Liberation Sans;"), []byte(`font-family:Liberation Sans,Arimo,Helvetica,Arial,sans-serif;`))
	image := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(plotWidth, p.height), vgimg.UseDPI(dpi))}
	p.draw(draw.New(image))
	if out.PNG, err = bytesOf(image); err != nil {
		return out, fmt.Errorf("draw %s: %w", p.name, err)
	}
	return out, nil
}

func bytesOf(w io.WriterTo) ([]byte, error) {
	var text bytes.Buffer
	_, err := w.WriteTo(&text)
	return text.Bytes(), err
}

// draw puts the panels below each other, so that their data are below each other, too, and the legend at
// their right.
func (p *picture) draw(c draw.Canvas) {
	c = draw.Crop(c, 2, -4, 2, -4)
	if p.entries > 0 {
		legend := c
		width := p.legend.Rectangle(c).Size().X + 4
		legend.Min.X = c.Max.X - width
		p.legend.Draw(legend)
		c.Max.X -= width + gap
	}
	all := 0.0
	for _, each := range p.panels {
		all += each.height
	}
	room := c.Max.Y - c.Min.Y - vg.Length(len(p.panels)-1)*gap
	var canvases []draw.Canvas
	top := c.Max.Y
	left, right := vg.Length(0), vg.Length(0)
	for _, each := range p.panels {
		one := c
		one.Max.Y = top
		one.Min.Y = top - room*vg.Length(each.height/all)
		top = one.Min.Y - gap
		data := each.DataCanvas(one)
		left, right = max(left, data.Min.X-one.Min.X), max(right, one.Max.X-data.Max.X)
		canvases = append(canvases, one)
	}
	for n, each := range p.panels {
		one := canvases[n]
		data := each.DataCanvas(one)
		each.Draw(draw.Crop(one, left-(data.Min.X-one.Min.X), -(right - (one.Max.X - data.Max.X)), 0, 0))
	}
}

// inline is a picture as a part of a page, which says in words what it is.
func inline(svg []byte, title string) string {
	_, rest, _ := strings.Cut(string(svg), "<svg")
	return `<svg role="img" aria-label="` + title + `"` + rest
}
