package draw

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"howdah/internal/lab/tpcc/form"
)

// Whatever is asked for stays within its bounds.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "stream"))
		low := rapid.IntRange(8, 300).Draw(t, "low")
		high := low + rapid.IntRange(0, 300).Draw(t, "more")
		if n := s.Between(low, high); n < low || n > high {
			t.Fatalf("%d is not between %d and %d", n, low, high)
		}
		a := rapid.SampledFrom([]int{lastRange, customerRange, itemRange}).Draw(t, "a")
		if n := s.NURand(a, low, high, rapid.IntRange(0, a).Draw(t, "c")); n < low || n > high {
			t.Fatalf("NURand %d is not between %d and %d", n, low, high)
		}
		for _, text := range [][]byte{s.AppendText([]byte("x"), low, high), s.AppendMarked([]byte("x"), low, high, "ORIGINAL")} {
			if n := len(text) - 1; n < low || n > high || text[0] != 'x' {
				t.Fatalf("a text of %d to %d has %d: %q", low, high, n, text)
			}
			if bad := bytes.Trim(text, alphabet+"x"); len(bad) > 0 {
				t.Fatalf("a text has %q", bad)
			}
		}
		if got := s.AppendDigits(nil, low); len(got) != low || len(bytes.Trim(got, "0123456789")) > 0 {
			t.Fatalf("%d digits: %q", low, got)
		}
		if got := s.AppendLetters(nil, low); len(got) != low || !bytes.Equal(got, bytes.ToUpper(got)) {
			t.Fatalf("%d letters: %q", low, got)
		}
	})
}

func TestPermute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]int32, rapid.IntRange(0, 3000).Draw(t, "n"))
		New(rapid.Uint64().Draw(t, "seed"), 1).Permute(all)
		slices.Sort(all)
		for i, n := range all {
			if int(n) != i+1 {
				t.Fatalf("number %d of the sorted ones is %d", i, n)
			}
		}
	})
}

// A permutation that is none leaves each number in its place more often than once.
func TestPermuteMoves(t *testing.T) {
	s := New(3, 4)
	all := make([]int32, form.Customers)
	same := 0
	for range 100 {
		s.Permute(all)
		for i, n := range all {
			if int(n) == i+1 {
				same++
			}
		}
	}
	if same < 50 || same > 160 {
		t.Errorf("in 100 permutations %d numbers stayed; 100 are to be expected", same)
	}
}

func TestEqualSeeds(t *testing.T) {
	of := func(seed, stream uint64) string { return string(New(seed, stream).AppendText(nil, 40, 40)) }
	if first, again := of(1, 2), of(1, 2); first != again {
		t.Error("equal seeds draw differently")
	}
	if of(1, 2) == of(1, 3) || of(1, 2) == of(2, 2) {
		t.Error("different seeds or streams draw the same")
	}
}

// counts draws often, and returns how often each number came.
func counts(n, times int, draw func() int) []int {
	all := make([]int, n)
	for range times {
		all[draw()]++
	}
	return all
}

func TestBetweenIsEven(t *testing.T) {
	s := New(5, 6)
	const times = 230000
	for n, got := range counts(24, times, func() int { return s.Between(1, 23) })[1:] {
		// Five standard deviations.
		if want := times / 23.0; math.Abs(float64(got)-want) > 5*math.Sqrt(want) {
			t.Errorf("%d came %d times of %d", n+1, got, times)
		}
	}
}

// The distribution of NURand is what its definition gives when all pairs are counted.
func TestNURandIsAsDefined(t *testing.T) {
	want := make([]float64, form.LastNames)
	for a := range lastRange + 1 {
		for y := range form.LastNames {
			want[((a|y)+form.LastLoad)%form.LastNames]++
		}
	}
	s := New(7, 8)
	const times = 1000000
	all := counts(form.LastNames, times, func() int { return s.LastName(form.LastLoad) })
	for n, got := range all {
		expected := want[n] * times / float64((lastRange+1)*form.LastNames)
		if math.Abs(float64(got)-expected) > 6*math.Sqrt(expected)+6 {
			t.Errorf("%d came %d times; %.0f are to be expected", n, got, expected)
		}
	}
}

// Half of all draws of a skewed key fall on a small share of the keys.
func TestSkew(t *testing.T) {
	s := New(9, 10)
	c := RunConstants(form.Specification, s)
	share := func(n int, draw func() int) float64 {
		const times = 500000
		all := counts(n+1, times, draw)
		slices.Sort(all)
		slices.Reverse(all)
		sum, keys := 0, 0
		for sum < times/2 {
			sum += all[keys]
			keys++
		}
		return float64(keys) / float64(n)
	}
	for _, c := range []struct {
		what      string
		low, high float64
		n         int
		draw      func() int
	}{
		{"customers, specification", 0.02, 0.25, form.Customers, func() int { return s.Customer(form.Specification, c) }},
		{"items, specification", 0.02, 0.25, form.Items, func() int { return s.Item(form.Specification, c) }},
		{"customers, compatible", 0.4, 0.5, form.Customers, func() int { return s.Customer(form.Compatible, c) }},
		{"items, compatible", 0.3, 0.5, form.Items, func() int { return s.Item(form.Compatible, c) }},
	} {
		if got := share(c.n, c.draw); got < c.low || got > c.high {
			t.Errorf("%s: half of the draws are on %.2f of the keys", c.what, got)
		}
	}
}

func TestLastNames(t *testing.T) {
	for n, want := range map[int]string{0: "BARBARBAR", 371: "PRICALLYOUGHT", 40: "BARPRESBAR", 999: "EINGEINGEING"} {
		if got := string(AppendLast(nil, n)); got != want {
			t.Errorf("%d is %s, not %s", n, got, want)
		}
	}
	all := map[string]bool{}
	for n := range form.LastNames {
		name := string(AppendLast(nil, n))
		if len(name) > 16 {
			t.Errorf("%s is too long for its column", name)
		}
		all[name] = true
	}
	if len(all) != form.LastNames {
		t.Errorf("%d different names", len(all))
	}
}

func TestRunConstants(t *testing.T) {
	for seed := range uint64(2000) {
		c := RunConstants(form.Specification, New(seed, 0))
		apart := c.Last - form.LastLoad
		if apart < leastApart || apart > mostApart || apart == firstNot || apart == secondNot || c.Last > lastRange {
			t.Fatalf("seed %d: last names have the constant %d", seed, c.Last)
		}
		if c.Customer < 0 || c.Customer > customerRange || c.Item < 0 || c.Item > itemRange {
			t.Fatalf("seed %d: %+v", seed, c)
		}
		if c := RunConstants(form.Compatible, New(seed, 0)); c.Last != form.LastLoad {
			t.Fatalf("the compatible mode has the constant %d", c.Last)
		}
	}
}

func TestMarksAreOneInTen(t *testing.T) {
	s := New(11, 12)
	marked, begins, ends := 0, 0, 0
	for range 20000 {
		text := string(s.AppendMarked(nil, 26, 50, "ORIGINAL"))
		if strings.Contains(text, "ORIGINAL") {
			marked++
		}
		if strings.HasPrefix(text, "ORIGINAL") {
			begins++
		}
		if strings.HasSuffix(text, "ORIGINAL") {
			ends++
		}
	}
	if marked < 1800 || marked > 2200 || begins == 0 || ends == 0 {
		t.Errorf("of 20000 texts %d are marked, %d at the begin, %d at the end", marked, begins, ends)
	}
}

func TestPercentAndExponential(t *testing.T) {
	s := New(13, 14)
	hits, sum := 0, 0.0
	for range 100000 {
		if s.Percent(15) {
			hits++
		}
		sum += s.Exponential(12)
	}
	if hits < 14400 || hits > 15600 {
		t.Errorf("15 %% came %d times of 100000", hits)
	}
	if mean := sum / 100000; mean < 11.7 || mean > 12.3 {
		t.Errorf("the mean is %.2f", mean)
	}
}
