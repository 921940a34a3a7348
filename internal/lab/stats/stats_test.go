package stats

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSummaries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		runs []float64
		want Summary
	}{
		{nil, Summary{}},
		{[]float64{7}, Summary{Runs: 1, Median: 7, Least: 7, Greatest: 7}},
		{[]float64{3, 1, 2}, Summary{Runs: 3, Median: 2, Least: 1, Greatest: 3, Variation: 0.5}},
		{[]float64{4, 1, 2, 3}, Summary{Runs: 4, Median: 2.5, Least: 1, Greatest: 4, Variation: math.Sqrt(5.0/3) / 2.5}},
		{[]float64{-1, 1}, Summary{Runs: 2, Least: -1, Greatest: 1}},
		{[]float64{6, 5, 4, 3, 2, 1}, Summary{Runs: 6, Median: 3.5, Least: 1, Greatest: 6, Variation: math.Sqrt(3.5) / 3.5, Interval: &Interval{1, 6}}},
		{
			[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9},
			Summary{Runs: 9, Median: 5, Least: 1, Greatest: 9, Variation: math.Sqrt(7.5) / 5, Interval: &Interval{2, 8}},
		},
	} {
		got := Of(tt.runs)
		if (got.Interval == nil) != (tt.want.Interval == nil) || got.Interval != nil && *got.Interval != *tt.want.Interval {
			t.Errorf("%v: interval %v, want %v", tt.runs, got.Interval, tt.want.Interval)
		}
		got.Interval, tt.want.Interval = nil, nil
		if math.Abs(got.Variation-tt.want.Variation) > 1e-9 {
			t.Errorf("%v: variation %v, want %v", tt.runs, got.Variation, tt.want.Variation)
		}
		if got.Variation = tt.want.Variation; got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.runs, got, tt.want)
		}
	}
	if Mean(nil) != 0 || Median(nil) != 0 || Mean([]float64{1, 2}) != 1.5 {
		t.Error("the mean or the median is wrong")
	}
}

// A summary neither changes the runs nor depends on their order.
func TestASummaryIsOfASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 30).Draw(t, "runs")
		kept := slices.Clone(runs)
		s := Of(runs)
		if !slices.Equal(runs, kept) {
			t.Fatal("the runs were changed")
		}
		if s.Least > s.Median || s.Median > s.Greatest {
			t.Fatalf("%+v", s)
		}
		if (s.Interval != nil) != (len(runs) >= 6) || s.Interval != nil && (s.Interval.From > s.Median || s.Interval.To < s.Median) {
			t.Fatalf("interval %+v of %d runs with the median %v", s.Interval, len(runs), s.Median)
		}
		slices.Reverse(runs)
		if again := Of(runs); again.Median != s.Median || again.Least != s.Least || again.Greatest != s.Greatest {
			t.Fatalf("%+v, and backwards %+v", s, again)
		}
	})
}

func TestComparisons(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		base, other []float64
		carried     bool
		p, ratio    float64
		why         string
	}{
		"apart, of three":       {[]float64{10, 11, 12}, []float64{20, 22, 24}, true, 0.1, 2, ""},
		"apart, below":          {[]float64{10, 11, 12}, []float64{5, 5.5, 6}, true, 0.1, 0.5, ""},
		"two runs":              {[]float64{1, 1}, []float64{2, 2}, false, 1.0 / 3, 2, "there are 2 runs of each, and 3 are needed"},
		"overlapping":           {[]float64{10, 12, 11}, []float64{11, 12, 13}, false, 0.4, 1.1, "the runs overlap: 10 to 12 against 11 to 13"},
		"alike":                 {[]float64{5, 5, 5}, []float64{5, 5, 5}, false, 1, 1, "the runs overlap"},
		"five, one of them out": {[]float64{1, 2, 3, 4, 7}, []float64{6, 8, 9, 10, 11}, true, 4.0 / 252, 3, ""},
		"no runs":               {nil, nil, false, 1, 0, "there are 0 runs"},
		"of nothing":            {[]float64{0, 0, 0}, []float64{1, 2, 3}, true, 0.1, 0, ""},
	} {
		c, err := Compare(tt.base, tt.other)
		if err != nil || c.Carried != tt.carried || !strings.HasPrefix(c.Why, tt.why) || (c.Why == "") != tt.carried {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if math.Abs(c.P-tt.p) > 1e-9 || math.Abs(c.Ratio.Median-tt.ratio) > 1e-9 {
			t.Errorf("%s: P %v, want %v; ratio %v, want %v", name, c.P, tt.p, c.Ratio.Median, tt.ratio)
		}
	}
	if _, err := Compare([]float64{1}, nil); !errors.Is(err, ErrPairs) {
		t.Errorf("runs that are no pairs: %v", err)
	}
}

// The counts of orders are those of all ways to choose.
func TestOrdersOfTwoSamples(t *testing.T) {
	t.Parallel()
	for a := range 7 {
		for b := range 7 {
			sum := 0.0
			ways := orders(a, b)
			for u, w := range ways {
				sum += w
				if w != ways[len(ways)-1-u] {
					t.Fatalf("%d and %d: %v is not even", a, b, ways)
				}
			}
			if sum != binomial(a+b, a) {
				t.Errorf("%d and %d: %v orders, want %v", a, b, sum, binomial(a+b, a))
			}
		}
	}
}

// By chance all orders of the runs of two settings that are alike are equally likely: here all of them are
// compared.
func TestWhatIsCarriedByChance(t *testing.T) {
	t.Parallel()
	if ByChance(2) != 0 {
		t.Error("two runs carry something")
	}
	for runs := FewestRuns; runs <= 6; runs++ {
		all, carried := 0, 0
		for chosen := range 1 << (2 * runs) {
			if bits.OnesCount(uint(chosen)) != runs {
				continue
			}
			var base, other []float64
			for rank := range 2 * runs {
				if chosen>>rank&1 == 1 {
					base = append(base, float64(rank))
				} else {
					other = append(other, float64(rank))
				}
			}
			c, err := Compare(base, other)
			if err != nil {
				t.Fatal(err)
			}
			if all++; c.Carried {
				carried++
			}
		}
		if want := float64(carried) / float64(all); math.Abs(ByChance(runs)-want) > 1e-9 {
			t.Errorf("%d runs: %v, want %v", runs, ByChance(runs), want)
		}
	}
}
