package screen

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	cases := []struct {
		name  string
		color bool
		fill  func(*Table)
		want  string
	}{
		{"columns are as wide as their widest cell", false, func(t *Table) {
			t.Head("A", "LONGER")
			t.Row("wide cell", "x")
			t.Row("y", "z")
		}, "A          LONGER\nwide cell  x\ny          z\n"},
		{"an empty column is left out with its heading", false, func(t *Table) {
			t.Head("A", "B", "C")
			t.Row("1", "", "3")
		}, "A  C\n1  3\n"},
		{"colour does not count as width", true, func(t *Table) {
			t.Row(Cell{"ab", Red}, "x")
			t.Row("abcd", "y")
		}, "\x1b[31mab\x1b[0m    x\nabcd  y\n"},
		{"no blanks at the end of a line", true, func(t *Table) {
			t.Row("a", Cell{"", Red}, Cell{"", Red})
			t.Row("b", "c", "")
		}, "a\nb  c\n"},
		{"letters outside ASCII are one column wide", false, func(t *Table) {
			t.Row("äöü", "x")
			t.Row("abc", "y")
		}, "äöü  x\nabc  y\n"},
		{"rows of unequal length", false, func(t *Table) {
			t.Row("a")
			t.Row("b", "c")
		}, "a\nb  c\n"},
		{"nothing", false, func(*Table) {}, ""},
	}
	for _, c := range cases {
		var table Table
		c.fill(&table)
		var b strings.Builder
		if err := table.Write(&b, c.color); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("%s:\n%q\nwant\n%q", c.name, b.String(), c.want)
		}
	}
}

func TestTableIndent(t *testing.T) {
	table := Table{Indent: "  "}
	table.Row("a", "b")
	var b strings.Builder
	if err := table.Write(&b, false); err != nil || b.String() != "  a  b\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}
