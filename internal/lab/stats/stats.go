// Package stats says what repeated measurements carry, and what not. It is for few runs: three to
// some dozens. It assumes nothing of how figures are distributed.
package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// FewestRuns is how many runs a conclusion needs at least.
const FewestRuns = 3

// Summary is what is told of the same figure of several runs.
type Summary struct {
	Runs     int     `json:"runs"`
	Median   float64 `json:"median"`
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
	// Variation is the standard deviation over the mean. It is 0 for one run, and where the mean is 0.
	Variation float64 `json:"variation"`
	// Interval has the median of all runs that could be taken with a probability of 95 % or more. It
	// is there from 6 runs on: fewer runs do not carry one.
	Interval *Interval `json:"interval,omitempty"`
}

// Interval is between two figures, which are in it.
type Interval struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// unsteady is the Variation above which runs were not alike.
const unsteady = 0.05

// Of sums runs up. Nothing is the zero Summary.
func Of(runs []float64) Summary {
	if len(runs) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(runs))
	return Summary{
		Runs: len(sorted), Median: middle(sorted), Least: sorted[0], Greatest: sorted[len(sorted)-1],
		Variation: variation(sorted), Interval: interval(sorted),
	}
}

// Median is the middle of figures, or the mean of the two in the middle; of none it is 0.
func Median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	return middle(slices.Sorted(slices.Values(figures)))
}

func middle(sorted []float64) float64 {
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Mean is the sum of figures over their number; of none it is 0.
func Mean(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	sum := 0.0
	for _, f := range figures {
		sum += f
	}
	return sum / float64(len(figures))
}

func variation(figures []float64) float64 {
	mean := Mean(figures)
	if len(figures) < 2 || mean == 0 {
		return 0
	}
	squares := 0.0
	for _, f := range figures {
		squares += (f - mean) * (f - mean)
	}
	return math.Sqrt(squares/float64(len(figures)-1)) / math.Abs(mean)
}

// interval is the narrowest pair of order statistics, alike far from both ends, between which the
// median lies with 95 %. Each run is above the median or not, as a coin falls.
func interval(sorted []float64) *Interval {
	n := len(sorted)
	outside := 0.0 // the probability that the median lies below sorted[k], or above its counterpart
	within := -1
	for k := range n / 2 {
		outside += 2 * binomial(n, k) / math.Pow(2, float64(n))
		if outside > 0.05 {
			break
		}
		within = k
	}
	if within < 0 {
		return nil
	}
	return &Interval{From: sorted[within], To: sorted[n-1-within]}
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b = b * float64(n-i) / float64(i+1)
	}
	return b
}

// Comparison is what two settings, which were measured in turns, say of each other.
type Comparison struct {
	Base  Summary `json:"base"`
	Other Summary `json:"other"`
	// Ratio is of each pair of runs of one round: other over base.
	Ratio Summary `json:"ratio"`
	// Carried says that the runs carry the difference. Otherwise Why says what is missing, and
	// nobody may say that one is larger.
	Carried bool    `json:"carried"`
	Why     string  `json:"why,omitempty"`
	P       float64 `json:"p"` // how likely such an order of runs is if both are alike, by Mann and Whitney
}

// ErrPairs says that two settings were not measured in turns.
var ErrPairs = errors.New("both settings need the same number of runs, taken in turns")

// WhyQuick is why a quick run carries no difference.
const WhyQuick = "a quick run is too short for that"

// likely is the largest P of a difference that is carried.
const likely = 0.05

// Compare compares two settings, whose runs are in the order in which they were taken.
//
// A difference is carried if all runs of one setting are above all runs of the other, or if their
// order is less likely than 5 % by chance. With three runs of each only the former is possible: its P
// is 0.1, which is why the report shows P.
func Compare(base, other []float64) (Comparison, error) {
	if len(base) != len(other) {
		return Comparison{}, fmt.Errorf("%w: there are %d and %d", ErrPairs, len(base), len(other))
	}
	c := Comparison{Base: Of(base), Other: Of(other), P: mannWhitney(base, other)}
	var ratios []float64
	for n := range base {
		if base[n] != 0 {
			ratios = append(ratios, other[n]/base[n])
		}
	}
	c.Ratio = Of(ratios)
	apart := c.Base.Least > c.Other.Greatest || c.Other.Least > c.Base.Greatest
	switch {
	case len(base) < FewestRuns:
		c.Why = fmt.Sprintf("there are %d runs of each, and %d are needed", len(base), FewestRuns)
	case !apart && c.P > likely:
		c.Why = fmt.Sprintf("the runs overlap: %s to %s against %s to %s", short(c.Base.Least), short(c.Base.Greatest), short(c.Other.Least), short(c.Other.Greatest))
	default:
		c.Carried = true
	}
	return c, nil
}

// ByChance is how likely Compare finds a difference carried between two settings with so many runs of each,
// if both are alike. Whoever compares much finds something.
func ByChance(runs int) float64 {
	if runs < FewestRuns {
		return 0
	}
	ways := orders(runs, runs)
	all, carried := 0.0, 0.0
	for _, w := range ways {
		all += w
	}
	tail := 0.0 // both ends, so far
	for u := range len(ways) / 2 {
		tail += 2 * ways[u]
		if u == 0 || tail/all <= likely {
			carried = tail
		}
	}
	return carried / all
}

// short is a figure with three digits that count, or all before the point.
func short(f float64) string {
	if math.Abs(f) >= 1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}

// mannWhitney is the exact probability, on both sides, of an order of two samples at least as uneven as
// this one, if all orders are alike. Equal figures count half.
func mannWhitney(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	u := 0.0
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				u++
			case x == y:
				u += 0.5
			}
		}
	}
	ways := orders(len(a), len(b))
	all, tail := 0.0, 0.0
	far := math.Abs(u - float64(len(a)*len(b))/2)
	for n, w := range ways {
		all += w
		if math.Abs(float64(n)-float64(len(a)*len(b))/2) >= far-1e-9 {
			tail += w
		}
	}
	return min(1, tail/all)
}

// orders counts the orders of two samples in which u pairs stand the one way, for each u.
func orders(a, b int) []float64 {
	// table[i] has the counts for i of the first sample, and as many of the second as were added.
	table := make([][]float64, a+1)
	for i := range table {
		table[i] = []float64{1}
	}
	for j := 1; j <= b; j++ {
		next := make([][]float64, a+1)
		next[0] = []float64{1}
		for i := 1; i <= a; i++ {
			// The largest is of the first sample, above all j of the second, or of the second.
			ways := make([]float64, i*j+1)
			for u, w := range next[i-1] {
				ways[u+j] += w
			}
			for u, w := range table[i] {
				ways[u] += w
			}
			next[i] = ways
		}
		table = next
	}
	return table[a]
}

// Unsteady reports whether runs that should be alike were not.
func (s Summary) Unsteady() bool { return s.Variation > unsteady }
