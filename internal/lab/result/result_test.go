package result

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/lab/experiment"
)

func given(t *testing.T) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Read([]byte(`
name: small
title: {en: Small}
question: {en: Small}
factors:
  - {name: tables, title: {en: Tables}, levels: [logged, unlogged]}
  - {name: clients, title: {en: Clients}, levels: [1, 2]}
runs: 3
each: [{sql: {text: SELECT 1}}]
compare: [{factor: tables, base: logged, figure: tps}]
quick: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// measured has all points: unlogged is twice as fast, and two clients are a tenth faster.
func measured(e *experiment.Experiment) *Result {
	r := &Result{Schema: Schema, Experiment: e.Name}
	for {
		p, more := r.Next(e)
		if !more {
			return r
		}
		tps := 100.0 + float64(p.Run)
		if p.Setting["tables"] == "unlogged" {
			tps *= 2
		}
		if p.Setting["clients"] == 2.0 {
			tps *= 1.1
		}
		r.Points = append(r.Points, Point{Setting: e.Key(p.Setting), Levels: p.Setting, Run: p.Run, Figures: map[string]float64{"tps": tps}})
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	e := given(t)
	r := measured(e)
	r.Sum(e)
	if len(r.Points) != 12 || len(r.Settings) != 4 || len(r.Comparisons) != 2 {
		t.Fatalf("%d points, %d settings, %d comparisons", len(r.Points), len(r.Settings), len(r.Comparisons))
	}
	if s := r.Settings[0].Figures["tps"]; s.Median != 102 || s.Runs != 3 {
		t.Errorf("%+v", s)
	}
	if c := r.Comparisons[0]; c.Base != "tables=logged clients=1" || c.Other != "tables=unlogged clients=1" || !c.Figures.Carried || c.Figures.Ratio.Median != 2 {
		t.Errorf("%+v", c)
	}
}

// What is struck counts nowhere, also not in the other half of its pair.
func TestPointsThatAreStruck(t *testing.T) {
	t.Parallel()
	e := given(t)
	r := measured(e)
	for n, p := range r.Points {
		if p.Run == 2 && p.Setting == "tables=logged clients=1" {
			r.Points[n].Struck = "something else took the processors"
		}
	}
	r.Sum(e)
	if s := r.Settings[0].Figures["tps"]; s.Runs != 2 || s.Median != 102 {
		t.Errorf("%+v", s)
	}
	if c := r.Comparisons[0]; c.Figures.Carried || c.Figures.Base.Runs != 2 || c.Figures.Other.Runs != 2 || !strings.Contains(c.Figures.Why, "3 are needed") {
		t.Errorf("%+v", c)
	}
}

func TestARunGoesOn(t *testing.T) {
	t.Parallel()
	e := given(t)
	r := measured(e)
	lost := r.Points[5]
	r.Points = slices.Delete(r.Points, 5, 6)
	p, more := r.Next(e)
	if !more || p.Run != lost.Run || e.Key(p.Setting) != lost.Setting {
		t.Errorf("%+v, %v", p, more)
	}
}

// What is struck stays, and is measured once more if somebody wants that.
func TestPointsAreMeasuredAgain(t *testing.T) {
	t.Parallel()
	e := given(t)
	r := measured(e)
	r.Points[5].Struck, r.Ended = "the server was lost", time.Now()
	if _, more := r.Next(e); more {
		t.Error("it is measured again, although nobody wants that")
	}
	for range 2 {
		r.MeasureAgain()
		p, more := r.Next(e)
		if !more || p.Run != r.Points[5].Run || e.Key(p.Setting) != r.Points[5].Setting || r.Done() != 11 || !r.Ended.IsZero() {
			t.Errorf("%+v, %t, %d", p, more, r.Done())
		}
	}
	again := r.Points[5]
	again.Struck, again.Again = "", false
	r.Points = append(r.Points, again)
	if _, more := r.Next(e); more || r.Done() != 12 {
		t.Errorf("%d", r.Done())
	}
	r.Sum(e)
	for _, s := range r.Settings {
		if s.Figures["tps"].Runs != 3 {
			t.Errorf("%+v", s)
		}
	}
}

// A run that was killed between the rows of a point and the point itself has no rows twice.
func TestRowsWithoutAPointAreCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Cut(dir, 0); err != nil {
		t.Error(err)
	}
	kept := []Tick{{Point: 0, At: time.Unix(1, 0).UTC(), Name: "a\n9,b", Value: 1}, {Point: 1, At: time.Unix(2, 0).UTC(), Name: "tps", Value: 2}}
	cut := []Tick{{Point: 2, At: time.Unix(3, 0).UTC(), Name: "tps", Value: 3}}
	if err := errors.Join(Append(dir, kept), Append(dir, cut)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Cut(dir, 2); err != nil {
			t.Fatal(err)
		}
		if all, err := ReadSeries(dir); err != nil || !slices.Equal(all, kept) {
			t.Errorf("%v, %v", all, err)
		}
	}
	// As after a loss of power in the middle of a row.
	file, err := os.OpenFile(filepath.Join(dir, SeriesName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("1,12,\"lock"); err != nil {
		t.Fatal(err)
	}
	if err := Cut(dir, 2); err != nil {
		t.Fatal(err)
	}
	if all, err := ReadSeries(dir); err != nil || !slices.Equal(all, kept) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestAResultIsKept(t *testing.T) {
	t.Parallel()
	dir, e := t.TempDir(), given(t)
	if _, err := Read(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	r := measured(e)
	r.Sum(e)
	r.Began = time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC)
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	again, err := Read(dir)
	if err != nil || !reflect.DeepEqual(again.Comparisons, r.Comparisons) || len(again.Points) != len(r.Points) || !again.Began.Equal(r.Began) {
		t.Errorf("%+v, %v", again, err)
	}
	r.Schema++
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.Is(err, ErrNewer) {
		t.Errorf("%v", err)
	}
}

// A result of form 1 says where its server was only by its environment.
func TestAResultOfForm1(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		schema    int
		place     string
		elsewhere bool
	}{
		"here": {1, "host", false}, "elsewhere": {1, "client", true}, "of form 2, which says it": {2, "client", false},
	} {
		dir := t.TempDir()
		text := fmt.Sprintf(`{"schema": %d, "target": {"name": "db:5432/x", "parameters": {"work_mem": "4MB"}}, "environment": {"%s": {"cpus": 2}}, "points": [{"setting": "a", "observed": [{"prefix": ""}]}]}`, c.schema, c.place)
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Read(dir)
		if err != nil || r.Schema != c.schema || r.Points[0].Observed[0].Elsewhere != c.elsewhere || r.Target.Parameters["work_mem"] != "4MB" {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

func TestASeriesIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if all, err := ReadSeries(dir); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	tick := func(point int, second int64, name string, value float64) Tick {
		return Tick{Point: point, At: time.Unix(second, 0).UTC(), Name: name, Value: value}
	}
	first := []Tick{tick(0, 100, "tps", 1234.5), tick(0, 101, "cpu", 0.25)}
	more := []Tick{tick(1, 102, "a, with a comma", 1e-9)}
	for _, ticks := range [][]Tick{first, more} {
		if err := Append(dir, ticks); err != nil {
			t.Fatal(err)
		}
		// As after a loss of power in the middle of a row.
		file, err := os.OpenFile(filepath.Join(dir, SeriesName), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("7,12"); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	if err := Append(dir, nil); err != nil {
		t.Fatal(err)
	}
	all, err := ReadSeries(dir)
	if err != nil || !slices.Equal(all, slices.Concat(first, more)) {
		t.Errorf("%v, %v", all, err)
	}
}

// A directory may be one where others write. A link there leads nowhere.
func TestASeriesFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("kept\nin part"), 0o600), os.Symlink(victim, filepath.Join(dir, SeriesName))); err != nil {
		t.Fatal(err)
	}
	if err := Append(dir, []Tick{{Name: "tps", Value: 1}}); err == nil {
		t.Error("it wrote where a link led")
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "kept\nin part" {
		t.Errorf("%q, %v", text, err)
	}
}
