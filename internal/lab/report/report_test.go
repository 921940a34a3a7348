package report

import (
	"bytes"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
)

const source = `
name: tables
title: {en: "Unlogged <tables>", ja: UNLOGGED テーブル}
question: {en: "What does WAL cost?", ja: WAL のコストは。}
factors:
  - {name: tables, title: {en: Tables}, levels: [logged, unlogged, half]}
  - {name: clients, title: {en: Clients}, levels: [1, 4], log: true}
runs: 3
each: [{sql: {text: SELECT 1}}]
compare: [{factor: tables, base: logged, figure: tps}]
quick: {runs: 3}
`

// found is a result: unlogged is 4.8 times as fast, and half is as fast as logged.
func found(t *testing.T) (*result.Result, []result.Tick) {
	t.Helper()
	e, err := experiment.Read([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	r := &result.Result{
		Schema: result.Schema, Experiment: e.Name, Howdah: "1.2", Source: source, Began: time.Unix(1790000000, 0).UTC(), Ended: time.Unix(1790000100, 0).UTC(),
		Target: result.Target{Name: "db:5432/x", Version: "PostgreSQL 15.20", Parameters: map[string]string{"shared_buffers": "2GB"}},
	}
	var ticks []result.Tick
	for {
		p, more := r.Next(e)
		if !more {
			break
		}
		tps := map[string]float64{"logged": 100, "unlogged": 480, "half": 100}[p.Setting["tables"].(string)] * (1 + float64(p.Run)/100)
		for second := range 3 {
			ticks = append(ticks, result.Tick{Point: len(r.Points), At: time.Unix(1790000000+int64(second), 0), Name: "tps", Value: tps})
		}
		r.Points = append(r.Points, result.Point{
			Setting: e.Key(p.Setting), Levels: p.Setting, Run: p.Run, Figures: map[string]float64{"tps": tps, "latency_p99_ms": 1000 / tps}, Commands: []string{"pgbench -c 4"},
		})
	}
	r.Problems = []string{"a client said <b>no</b>"}
	r.Sum(e)
	return r, ticks
}

func TestReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, ticks := found(t)
	if err := result.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	if err := result.Append(dir, ticks); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, Languages...); err != nil {
		t.Fatal(err)
	}
	for language, wants := range map[string][]string{
		"en": {
			`<html lang="en">`, "Unlogged &lt;tables&gt;", "What does WAL cost?", "tps with Tables unlogged, Clients 1 is 4.8 times that with Tables logged, Clients 1 (4.8 to 4.8 in the pairs; P 0.1).",
			"tps: between Tables half, Clients 4 and Tables logged, Clients 4 no difference can be told: the runs overlap: 101 to 103 against 101 to 103.",
			"a client said &lt;b&gt;no&lt;/b&gt;", "shared_buffers", "PostgreSQL 15.20", "pgbench -c 4", "by howdah 1.2", "name: tables",
		},
		"ja": {`<html lang="ja">`, "UNLOGGED テーブル", "tps:Tables unlogged, Clients 1 は Tables logged, Clients 1 の 4.8 倍（各組の比 4.8～4.8、P = 0.1）。", "差はあるとは言えません"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, FileName(language)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: it does not say %q", language, want)
			}
		}
		if strings.Count(string(text), "<svg") != 3 {
			t.Errorf("%s: it has %d plots", language, strings.Count(string(text), "<svg"))
		}
		// It opens offline.
		for _, outside := range []string{`src="http`, `href="http`, "@import", "<script"} {
			if strings.Contains(string(text), outside) {
				t.Errorf("%s: it has %s", language, outside)
			}
		}
	}
	for _, name := range []string{"sweep-tps", "ratio-tables-tps", "seconds-tps"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.DecodeConfig(bytes.NewReader(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A run that was broken off has a report, too, which says so.
func TestAReportOfHalfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, _ := found(t)
	r.Points, r.Settings, r.Comparisons, r.Ended, r.Quick = r.Points[:1], nil, nil, time.Time{}, true
	if err := result.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, "en"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(text), "This run is not finished.") || !strings.Contains(string(text), "This was a quick run") {
		t.Errorf("%.600s, %v", text, err)
	}
}

func TestBothLanguagesHaveAllWords(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(maps.Keys(words["en"]))
	for _, language := range Languages {
		if got := slices.Sorted(maps.Keys(words[language])); !slices.Equal(got, want) {
			t.Errorf("%s has %q, and English %q", language, got, want)
		}
	}
	if word("xx", "value") != "Value" {
		t.Error("a language that is not there is not English")
	}
}

func TestShortFigures(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{0: "0", 1234.56: "1235", 0.123456: "0.1235", 99.99: "99.99", -1234.5: "-1234"} {
		if got := short(f); got != want {
			t.Errorf("%v: %s", f, got)
		}
	}
}
