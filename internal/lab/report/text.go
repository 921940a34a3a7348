package report

import (
	"bytes"
	"html"
	"math"
	"regexp"
	"strconv"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// handler lays text out, also that of letters that the library's font does not have: these are as wide
// as they are high. A browser has them.
type handler struct{ text.Plain }

func newHandler() handler { return handler{text.Plain{Fonts: font.DefaultCache}} }

func (h handler) width(txt string, fnt font.Font) vg.Length {
	narrow := make([]rune, 0, len(txt))
	width := vg.Length(0)
	for _, r := range txt {
		if r >= 0x2E80 { // from here on there are Chinese and Japanese letters
			width += fnt.Size
		} else {
			narrow = append(narrow, r)
		}
	}
	face := h.Fonts.Lookup(fnt, fnt.Size)
	return width + face.Width(string(narrow))
}

// Box implements text.Handler.
func (h handler) Box(txt string, fnt font.Font) (width, height, depth vg.Length) {
	_, height, depth = h.Plain.Box(txt, fnt)
	return h.width(txt, fnt), height, depth
}

// Draw implements text.Handler. It aligns by our widths.
func (h handler) Draw(c vg.Canvas, txt string, sty text.Style, pt vg.Point) {
	shift := h.width(txt, sty.Font) * vg.Length(sty.XAlign)
	sty.XAlign = text.XLeft
	sin, cos := math.Sincos(sty.Rotation)
	pt.X += shift * vg.Length(cos)
	pt.Y += shift * vg.Length(sin)
	h.Plain.Draw(c, txt, sty, pt)
}

// handle has a plot lay all its text out so.
func handle(p *plot.Plot) {
	h := newHandler()
	p.TextHandler = h
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Handler = h
	}
}

var svgText = regexp.MustCompile(`<text ([^>]*font-size:([0-9.]+)px[^>]*)>([^<]*)</text>`)

// fitted tells the width of each text: a browser that has another font would make it longer, and have it
// lie over others.
func fitted(svg []byte) []byte {
	h := newHandler()
	return svgText.ReplaceAllFunc(svg, func(all []byte) []byte {
		m := svgText.FindSubmatch(all)
		size, err := strconv.ParseFloat(string(m[2]), 64)
		content := html.UnescapeString(string(m[3]))
		if err != nil || utf8.RuneCountInString(content) < 2 {
			return all
		}
		width := h.width(content, sans(vg.Length(size)))
		var out bytes.Buffer
		out.WriteString(`<text textLength="` + strconv.FormatFloat(width.Points(), 'f', 2, 64) + `" lengthAdjust="spacingAndGlyphs" `)
		out.Write(m[1])
		out.WriteString(">")
		out.Write(m[3])
		out.WriteString("</text>")
		return out.Bytes()
	})
}
