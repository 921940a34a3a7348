package main

import (
	"strings"
	"testing"
)

func TestProseIsWrapped(t *testing.T) {
	word := strings.Repeat("x", 49)
	long := strings.Repeat("y", 120)
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"# a heading\nshort\nlines\n\nof two  paragraphs", "# a heading\nshort lines\n\nof two paragraphs"},
		{word + " " + word + " z", word + " " + word + "\nz"},
		{word + " " + word + "z z", word + " " + word + "z\nz"},
		{word + " " + word + "zz z", word + "\n" + word + "zz z"},
		{"    " + word + " " + word + " code", "    " + word + " " + word + " code"},
		{long + " z", long + "\nz"},
	} {
		if got := wrapped(c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
