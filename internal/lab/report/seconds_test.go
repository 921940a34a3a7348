package report

import (
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
)

// A few marks stand in one panel with all lines. More than can be read there give each setting a panel
// of its own, and all panels the same seconds.
func TestMarksThatNobodyCouldRead(t *testing.T) {
	t.Parallel()
	began := time.Unix(1e9, 0)
	for marks, panels := range map[int]int{0: 1, 2: 1, 3: 3} {
		w := writer{language: "en", r: &result.Result{}, e: &experiment.Experiment{}}
		var all []track
		for point := range 3 {
			var p result.Point
			for n := range marks {
				p.Marks = append(p.Marks, result.Mark{At: began.Add(time.Duration(n) * time.Second), Text: "process 7 is gone"})
			}
			w.r.Points = append(w.r.Points, p)
			all = append(all, track{point: point, began: began, seen: plotter.XYs{{X: 1, Y: 5}, {X: float64(10 + point), Y: 7}}})
		}
		p := newPicture("seconds-tps", "seconds")
		if err := w.addSeconds(p, "TPS", all); err != nil {
			t.Fatal(err)
		}
		if len(p.panels) != panels {
			t.Errorf("%d marks a setting: %d panels, want %d", marks, len(p.panels), panels)
		}
		for _, one := range p.panels {
			if one.X.Max != 12 {
				t.Errorf("%d marks a setting: a panel ends after %v s, want 12", marks, one.X.Max)
			}
		}
		if _, err := p.drawn(); err != nil {
			t.Error(err)
		}
	}
}
