package series

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Stat sums up one column over an interval.
type Stat struct {
	// Mean weighs every row by its length. For a ratio it is the ratio of the means.
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"` // of the rows
	Max  float64 `json:"max"` // of the rows
	// Seconds is how much of the interval was seen. It is less than the interval's length if there
	// were gaps.
	Seconds float64 `json:"seconds"`
}

// Summary sums up the rows of an interval.
type Summary struct {
	From    int64           `json:"from"`    // milliseconds since 1970
	To      int64           `json:"to"`      // milliseconds since 1970
	Rows    int             `json:"rows"`    // how many there were
	Columns map[string]Stat `json:"columns"` // by name
}

// Named is a figure with the name of its column.
type Named struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Summarise sums up the rows whose middle is in [from, to). It does not change the rows. A column
// that no row has is absent.
func Summarise(rows []Row, from, to time.Time) Summary {
	s := Summary{From: from.UnixMilli(), To: to.UnixMilli(), Columns: map[string]Stat{}}
	var within []Row
	for _, row := range rows {
		middle := float64(row.At) - row.Seconds*500
		if middle >= float64(s.From) && middle < float64(s.To) {
			within = append(within, row)
		}
	}
	s.Rows = len(within)
	for name := range namesOf(within) {
		s.Columns[name] = sum(within, name)
	}
	for _, d := range derived {
		value, known := d.of(s.Mean)
		stat, seen := s.Columns[d.name]
		if known && seen {
			stat.Mean = value
			s.Columns[d.name] = stat
		}
	}
	return s
}

func namesOf(rows []Row) map[string]bool {
	names := map[string]bool{}
	for _, row := range rows {
		for name := range row.Values {
			names[name] = true
		}
	}
	return names
}

// sum sums up one column. A row without it is a gap, unless the row says that nothing was there to
// see.
func sum(rows []Row, name string) Stat {
	stat := Stat{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, row := range rows {
		value, known := row.Values[name]
		if !known {
			if !countedAsNone(row, name) {
				continue
			}
			value = 0
		}
		stat.Mean += value * row.Seconds
		stat.Seconds += row.Seconds
		stat.Min, stat.Max = min(stat.Min, value), max(stat.Max, value)
	}
	stat.Mean /= stat.Seconds
	return stat
}

// countedAsNone: an event that nobody waited for has no column in a row that counted the waits.
func countedAsNone(row Row, name string) bool {
	for prefix, witness := range sparse {
		if strings.HasPrefix(name, prefix) {
			_, counted := row.Values[witness]
			return counted
		}
	}
	return false
}

// Mean returns a column's mean, and whether it is known.
func (s Summary) Mean(name string) (float64, bool) {
	stat, known := s.Columns[name]
	return stat.Mean, known
}

// Min returns a column's least value, and whether it is known.
func (s Summary) Min(name string) (float64, bool) {
	stat, known := s.Columns[name]
	return stat.Min, known
}

// Total returns how much a counter grew while it was seen, and whether it is known. It is for the
// columns that are rates.
func (s Summary) Total(name string) (float64, bool) {
	stat, known := s.Columns[name]
	return stat.Mean * stat.Seconds, known
}

// Length returns how long the interval is.
func (s Summary) Length() time.Duration { return time.Duration(s.To-s.From) * time.Millisecond }

// Top returns the columns with this prefix that have the greatest means, at most n of them, the
// greatest first. The prefix is cut from the names. Columns with a mean of 0 are left out.
func (s Summary) Top(prefix string, n int) []Named {
	var all []Named
	for name, stat := range s.Columns {
		if rest, ok := strings.CutPrefix(name, prefix); ok && stat.Mean > 0 {
			all = append(all, Named{Name: rest, Value: stat.Mean})
		}
	}
	slices.SortFunc(all, func(a, b Named) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}
