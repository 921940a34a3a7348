package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Sizes of the plot, in SVG's units.
const (
	plotWidth, plotHeight = 720.0, 320.0
	plotLeft, plotBottom  = 60.0, 40.0
	plotTop, plotRight    = 20.0, 20.0
)

// plot writes the transactions of each second after a failover, medians, as a picture.
func (b *bench) plot(path string) error {
	seconds := int(b.after / time.Second)
	var all []float64
	for _, t := range b.turns {
		all = append(all, t.before)
	}
	before := median(all)
	most := before
	for n := range seconds {
		most = max(most, b.second(n, true), b.second(n, false))
	}
	x := func(n int) float64 {
		return plotLeft + (plotWidth-plotLeft-plotRight)*float64(n)/float64(seconds)
	}
	y := func(tps float64) float64 {
		return plotHeight - plotBottom - (plotHeight-plotTop-plotBottom)*tps/most
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&s, `<rect width="%g" height="%g" fill="white"/>`+"\n", plotWidth, plotHeight)
	for _, tps := range []float64{0, before / 2, before} {
		fmt.Fprintf(&s, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%g" y="%.1f" text-anchor="end">%.0f</text>`+"\n",
			plotLeft, plotWidth-plotRight, y(tps), y(tps), plotLeft-6, y(tps)+4, tps)
	}
	for n := 0; n <= seconds; n += 10 {
		fmt.Fprintf(&s, `<text x="%.1f" y="%g" text-anchor="middle">%d s</text>`+"\n", x(n), plotHeight-plotBottom+18, n)
	}
	for _, line := range []struct {
		warm        bool
		color, name string
		at          float64
	}{{true, "#1b7837", "with cluster cache management", 12}, {false, "#b2182b", "without", 26}} {
		var points []string
		for n := range seconds {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(n), y(b.second(n, line.warm))))
		}
		fmt.Fprintf(&s, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", line.color, strings.Join(points, " "))
		fmt.Fprintf(&s, `<text x="%g" y="%g" text-anchor="end" fill="%s">%s</text>`+"\n", plotWidth-plotRight, plotHeight-plotBottom-line.at, line.color, line.name)
	}
	s.WriteString("<text x=\"12\" y=\"14\">transactions a second after a failover; as before it: the upper line</text>\n</svg>\n")
	return os.WriteFile(path, []byte(s.String()), 0o644)
}
