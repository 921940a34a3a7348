package screen

import (
	"io"
	"strings"
	"unicode/utf8"
)

// gap is the space between two columns.
const gap = "  "

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Table is rows of cells in columns as wide as their widest cell. The first row
// may be a heading.
type Table struct {
	Indent string
	rows   [][]Cell
}

// Head adds the heading.
func (t *Table) Head(names ...string) {
	row := make([]Cell, len(names))
	for i, n := range names {
		row[i] = Cell{n, Dim}
	}
	t.rows = append(t.rows, row)
}

// Row adds a row of plain texts and Cells.
func (t *Table) Row(fields ...any) {
	row := make([]Cell, len(fields))
	for i, f := range fields {
		switch v := f.(type) {
		case Cell:
			row[i] = v
		case string:
			row[i] = Cell{Text: v}
		default:
			panic("screen: a table holds texts and cells")
		}
	}
	t.rows = append(t.rows, row)
}

// Rows returns how many rows there are, the heading included.
func (t *Table) Rows() int { return len(t.rows) }

// Write writes the table. It leaves out columns that have nothing below their heading, and blanks
// at the end of lines.
func (t *Table) Write(w io.Writer, color bool) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		line, pending := t.Indent, ""
		for i, c := range row {
			if widths[i] == 0 {
				continue
			}
			if c.Text != "" {
				line += pending + paint(color, c.Style, c.Text)
				pending = ""
			}
			pending += strings.Repeat(" ", widths[i]-width(c.Text)) + gap
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths returns the width of each column, or 0 for a column to leave out.
func (t *Table) widths() []int {
	var widths []int
	filled := map[int]bool{}
	for n, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(c.Text))
			filled[i] = filled[i] || c.Text != "" && (n > 0 || c.Style != Dim)
		}
	}
	for i := range widths {
		if !filled[i] {
			widths[i] = 0
		}
	}
	return widths
}

func width(text string) int { return utf8.RuneCountInString(text) }
