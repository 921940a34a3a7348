package user

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"howdah/internal/lab/tpcc/draw"
	"howdah/internal/lab/tpcc/form"
	"howdah/internal/lab/tpcc/terminal"
	"howdah/internal/testkit/golden"
)

var someTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00`)

func composer(mode form.Mode) *User {
	return New(Options{Schema: "howdah_lab", Call: form.Procedures, Terminal: terminal.Options{
		Users: 1, Warehouses: 10, Mode: mode, Seed: 6, Constants: draw.RunConstants(mode, draw.New(6, 0)),
	}})
}

// TestCalls checks the texts of CALLs against golden files, which hold the mode and three of each kind.
func TestCalls(t *testing.T) {
	files := golden.Each(t, func(_ *testing.T, f *golden.File) {
		u := composer(form.Mode(strings.TrimSpace(f.Input)))
		var b strings.Builder
		for kind := range form.Kind(form.Kinds) {
			for range 3 {
				u.compose(kind)
				b.WriteString(someTime.ReplaceAllString(string(u.call), "now") + "\n")
			}
		}
		f.Check(b.String())
	})
	if files != 2 {
		t.Fatalf("there are %d golden files", files)
	}
}

// Composing a CALL allocates next to nothing: there are many thousand a second.
func TestComposingIsCheap(t *testing.T) {
	for _, mode := range []form.Mode{form.Compatible, form.Specification} {
		u := composer(mode)
		for range 100 {
			u.compose(form.NewOrder) // the room grows
			u.compose(form.Payment)
		}
		if n := testing.AllocsPerRun(100, func() { u.compose(form.NewOrder); u.compose(form.Payment) }); n > 1 {
			t.Errorf("%s: a new order and a payment make %v allocations", mode, n)
		}
	}
}

func TestAmounts(t *testing.T) {
	for cents, want := range map[int]string{0: "0", 5: "0.05", 100: "1", 123: "1.23", 250: "2.50", 500000: "5000"} {
		if got := string(appendCents(nil, cents)); got != want {
			t.Errorf("%d cents are %s, not %s", cents, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		cents := rapid.IntRange(0, math.MaxInt32).Draw(t, "cents")
		got, err := parseCents(fmt.Appendf(nil, "%d.%02d", cents/100, cents%100))
		if err != nil || got != cents {
			t.Fatalf("%d cents became %d (%v)", cents, got, err)
		}
	})
	for _, text := range []string{"", "1", ".50", "1.5", "1.500", "1,50", "a.50", "1.5x"} {
		if got, err := parseCents([]byte(text)); err == nil {
			t.Errorf("%q became %d cents", text, got)
		}
	}
}

func TestArrays(t *testing.T) {
	if got := string(appendTexts(nil, [][]byte{[]byte("1.50"), nil, []byte("abc")})); got != "{1.50,NULL,abc}" {
		t.Error(got)
	}
	lines := []terminal.Line{{Item: 1, Supply: 2, Quantity: 3}, {Item: 4, Supply: 5, Quantity: 6}}
	if got := string(appendArray(appendArray(nil, lines, item), lines, quantity)); got != "{1,4}{3,6}" {
		t.Error(got)
	}
}

// Parameters stay what they are when their room grows, and so do rows.
func TestRoomsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p params
		var a answer
		for range 3 { // the rooms are used again
			p.reset()
			a.reset()
			texts := rapid.SliceOfN(rapid.StringN(0, 40, -1), 1, 30).Draw(t, "texts")
			for i, text := range texts {
				p.text([]byte(text)).ints(i)
				row := [][]byte{[]byte(text), nil}
				if err := a.keep(row); err != nil {
					t.Fatal(err)
				}
				copy(row[0], strings.Repeat("?", len(text)))
			}
			for i, text := range texts {
				if string(p.list[2*i]) != text || string(p.list[2*i+1]) != fmt.Sprint(i) {
					t.Fatalf("parameter %d became %q, %q", i, p.list[2*i], p.list[2*i+1])
				}
				if string(a.cell(i, 0)) != text || a.cell(i, 1) != nil {
					t.Fatalf("row %d became %q, %q", i, a.cell(i, 0), a.cell(i, 1))
				}
			}
			if a.rows() != len(texts) {
				t.Fatalf("%d rows of %d", a.rows(), len(texts))
			}
		}
	})
}

func TestAnswers(t *testing.T) {
	var a answer
	if a.rows() != 0 {
		t.Error("there are rows")
	}
	if err := a.keep([][]byte{[]byte("7"), []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if n, err := a.int(0, 0); n != 7 || err != nil {
		t.Errorf("%d (%v)", n, err)
	}
	if _, err := a.int(0, 1); err == nil {
		t.Error("x is a number")
	}
}
