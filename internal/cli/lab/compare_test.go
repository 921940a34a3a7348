package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/report"
	"howdah/internal/lab/result"
)

// keep writes a result of the experiment that is built in, in which all runs have one throughput.
func keep(t *testing.T, dir string, tps float64) string {
	t.Helper()
	text, err := experiment.Source("e3")
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	r := &result.Result{Schema: result.Schema, Experiment: e.Name, Source: string(text)}
	for {
		p, more := r.Next(e)
		if !more {
			break
		}
		r.Points = append(r.Points, result.Point{Setting: e.Key(p.Setting), Levels: p.Setting, Run: p.Run, Figures: map[string]float64{"tps": tps + float64(p.Run)}})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := result.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	return dir
}

func runCompare(t *testing.T, words ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	o := cli.NewOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard}, "test")
	cmd := newCompare(o)
	cmd.SetArgs(words)
	cmd.SetErr(io.Discard)
	cmd.SilenceUsage = true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	before, after, out := keep(t, filepath.Join(dir, "before", "e3"), 100), keep(t, filepath.Join(dir, "after", "e3"), 300), filepath.Join(dir, "pages")
	printed, err := runCompare(t, before, after, "--out", out, "--lang", "ja")
	if err != nil || printed != filepath.Join(out, "compare.ja.html")+"\n" {
		t.Fatalf("%q, %v", printed, err)
	}
	text, err := os.ReadFile(filepath.Join(out, "compare.ja.html"))
	if err != nil || !strings.Contains(string(text), "2.961 倍です") {
		t.Errorf("%.300s, %v", text, err)
	}
	found, _, err := report.Compare(before, after, out, "en")
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(found)
	if err != nil || !strings.Contains(string(line), `"setting":"tables=logged clients=1","figure":"tps"`) || !strings.Contains(string(line), `"carried":true`) {
		t.Errorf("%s, %v", line, err)
	}
	for _, words := range [][]string{{before}, {before, after, "--lang", "fr"}} {
		if _, err := runCompare(t, words...); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("%q: %v", words, err)
		}
	}
	if _, err := runCompare(t, before, filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no result: %v", err)
	}
}
