package lab

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"howdah/internal/cli"
	"howdah/internal/lab/book"
	"howdah/internal/lab/own"
	"howdah/internal/lab/report"
	"howdah/internal/lab/result"
	"howdah/internal/lab/run"
	"howdah/internal/lab/target"
)

// A dry run says what e5 would take, and no server is asked.
func TestPlanOfE5(t *testing.T) {
	t.Parallel()
	_, e, err := find("e5")
	if err != nil {
		t.Fatal(err)
	}
	long, err := planOf(run.Options{Experiment: e, Dir: "lab/e5"})
	if err != nil || long.Points != 21 || long.Seconds != 21*420 || long.Clients != 65 || long.Bytes < 5e9 || long.Bytes > 6e9 {
		t.Errorf("%+v, %v", long, err)
	}
	quick, err := planOf(run.Options{Experiment: e.Quickly()})
	if err != nil || quick.Points != 9 || len(quick.Settings) != 3 || quick.Seconds > 120 || quick.Clients != 17 || quick.Bytes > 5e8 {
		t.Errorf("%+v, %v", quick, err)
	}
}

// Faults of a file need a flag, which a run that goes on has, too. Those that are built in need none.
func TestFaultsOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sent.yaml")
	const text = "name: sent\ntitle: {en: Sent}\nquestion: {en: Safe}\nneeds: [howdah, writes, faults]\nruns: 1\neach: [{fault: {kind: kill}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments []string
		target    target.Target
		want      error
	}{
		{[]string{file}, &target.Howdah{}, errFaults},
		{[]string{"--allow-faults", file}, &target.Howdah{}, nil},
		{[]string{"drill"}, &target.Howdah{}, nil},
		{[]string{file}, &target.Address{}, nil},
	} {
		cmd, f := newRunWith()
		if err := cmd.ParseFlags(c.arguments); err != nil {
			t.Fatal(err)
		}
		names := cmd.Flags().Args()
		all, err := f.work(&cli.Options{}, names)
		if err != nil {
			t.Fatal(err)
		}
		all[0].Target = c.target
		if err := f.mayBreak(names[0], all[0]); !errors.Is(err, c.want) {
			t.Errorf("%q: %v", c.arguments, err)
		}
		if f.faults && !slices.Contains(given(cmd), "--allow-faults=true") {
			t.Errorf("a run that goes on would have %q", given(cmd))
		}
	}
}

// It says how often a snapshot is restored, and how much is made, which takes time besides the loads.
func TestPlanOfE1(t *testing.T) {
	t.Parallel()
	_, e, err := find("e1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := planOf(run.Options{Experiment: e.Quickly()})
	if err != nil || p.Restores != p.Points || p.Built < p.Bytes || p.Bytes == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// While a run writes its result, nobody else does.
func TestTheReportOfARunThatGoesOn(t *testing.T) {
	t.Parallel()
	const text = "name: mine\ntitle: {en: Mine}\nquestion: {en: Which}\nruns: 1\neach: [{sql: {text: SELECT 1, figure: took}}]\nquick: {}\n"
	dir := t.TempDir()
	if err := writeReport(dir, report.Languages); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	if err := result.Write(dir, &result.Result{Schema: result.Schema, Experiment: "mine", Source: text}); err != nil {
		t.Fatal(err)
	}
	unlock, err := run.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, result.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := writeReport(dir, report.Languages); !errors.Is(err, run.ErrBusy) {
		t.Errorf("while it goes on: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, result.FileName))
	if err != nil || string(after) != string(before) {
		t.Errorf("the result became %s, %v", after, err)
	}
	unlock()
	if err := writeReport(dir, report.Languages); err != nil {
		t.Errorf("when it was broken off: %v", err)
	}
	for _, l := range report.Languages {
		if _, err := os.Stat(filepath.Join(dir, report.FileName(l))); err != nil {
			t.Error(err)
		}
	}
}

// What a run has broken is undone wherever its directory is, also one whose name is a pattern.
func TestWhatRunsHaveBrokenIsUndone(t *testing.T) {
	t.Parallel()
	b := book.Of(t.TempDir())
	var fills []string
	for _, name := range []string{"plain", "[out]", "out*"} {
		r, err := b.Add(book.Run{Dir: filepath.Join(t.TempDir(), name), Began: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		member, dir := t.TempDir(), filepath.Join(r.Dir, "e1")
		record, err := json.Marshal(map[string]any{"kind": "full-disk", "placed": map[string]string{"dir": member, "name": "fill"}})
		err = errors.Join(err, os.Mkdir(dir, 0o700), own.WriteFile(filepath.Join(dir, "fault.json"), record), os.WriteFile(filepath.Join(member, "fill"), nil, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		fills = append(fills, filepath.Join(member, "fill"))
	}
	gone, err := b.Add(book.Run{Began: time.Now()})
	if err == nil {
		err = errors.Join(os.Remove(gone.Dir), healAll(t.Context(), b))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, fill := range fills {
		if _, err := os.Stat(fill); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", fill, err)
		}
	}
}
