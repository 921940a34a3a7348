package report

import (
	"bytes"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg/draw"

	"howdah/internal/failover/postmortem"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/lab/verdict"
	"howdah/internal/observe/environment"
	"howdah/internal/observe/machine"
	"howdah/internal/observe/series"
)

const source = `
name: tables
title: {en: "Unlogged <tables>", ja: UNLOGGED テーブル}
question: {en: "What does WAL cost?", ja: WAL のコストは。}
factors:
  - {name: tables, title: {en: Tables, ja: テーブル}, levels: [logged, unlogged, half]}
  - {name: clients, title: {en: Clients, ja: クライアント数}, levels: [1, 4], log: true}
runs: 3
prepare: [{init: {scale: 1}}]
each: [{pgbench: {scripts: [{builtin: tpcb-like, weight: 2}, {sql: SELECT 1}], clients: $clients, seconds: 3}}]
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
	began := time.Unix(1790000000, 0).UTC()
	r := &result.Result{
		Schema: result.Schema, Experiment: e.Name, Howdah: "1.2", Source: source, Began: began, Ended: began.Add(100 * time.Second),
		Target:      result.Target{Name: "db:5432/x", Version: "PostgreSQL 15.20"},
		Environment: &environment.Environment{Database: environment.Database{Version: "PostgreSQL 15.20 on x86", Settings: map[string]environment.Setting{"shared_buffers": {Value: "262144", Unit: "8kB", Source: "configuration file"}}}, Host: &environment.Host{CPUModel: "A CPU", CPUs: 2, MemoryBytes: 8 << 30, Kernel: "6.1"}},
	}
	var ticks []result.Tick
	for {
		p, more := r.Next(e)
		if !more {
			break
		}
		clients := p.Setting["clients"].(float64)
		tps := map[string]float64{"logged": 100, "unlogged": 480, "half": 100}[p.Setting["tables"].(string)] * (1 + float64(p.Run)/100)
		for second := range 3 {
			ticks = append(ticks, result.Tick{Point: len(r.Points), At: began.Add(time.Duration(second) * time.Second), Name: "tps", Value: tps})
		}
		point := result.Point{
			Setting: e.Key(p.Setting), Levels: p.Setting, Run: p.Run, Began: began, Commands: []string{"pgbench -c 4 --log-prefix=/tmp/x db"}, Errors: []string{"a client said <b>no</b>"},
			Figures: map[string]float64{
				"tps": tps, "latency_p50_ms": 900 / tps, "latency_p95_ms": 950 / tps, "latency_p99_ms": 1000 / tps, "latency_max_ms": 2000 / tps,
				"aas": 4, "aas_cpu": 1, "aas_lock": 3, "aas_io": 0, "server_cpu_percent": 40, "read_iops": 5, "write_iops": 500, "own_figure": 7,
				"new_order_p95_ms": 3, "payment_p95_ms": 2, "client_cpu_per_1000_nopm": 0.1,
			},
			Observed: []result.Observation{{Load: verdict.Load{Clients: int(clients), TPS: tps}, Observed: series.Summary{Rows: 3, Columns: map[string]series.Stat{
				"aas": {Mean: 4}, "aas.cpu": {Mean: 1}, "aas.lock": {Mean: 3}, "wait.Lock:transactionid": {Mean: 3}, "lock.on.branches": {Mean: 3}, "wait.CPU": {Mean: 1},
				"machine.cpus": {Mean: 2}, "machine.foreign": {Mean: 0.5},
			}}}},
		}
		if len(r.Points) == 1 {
			point.Marks = []result.Mark{{At: began.Add(time.Second), Text: "kill -9"}}
			point.Observed[0].Failed = "it was lost"
			point.Faults = []result.Fault{{Kind: "kill", Proof: "process 7 is gone", Healed: "all copies are ready again", Postmortems: []postmortem.Record{
				{From: "m1", FromHost: "zone-a", To: "m2", ToHost: "zone-b", Cause: "crash", Detected: began, FirstWrite: began.Add(400 * time.Millisecond)}, {From: "m2", To: "m1"},
			}}}
		}
		r.Points = append(r.Points, point)
	}
	r.Sum(e)
	return r, ticks
}

// kept writes a result into a directory.
func kept(t *testing.T, dir string, r *result.Result, ticks []result.Tick) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := result.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	if err := result.Append(dir, ticks); err != nil {
		t.Fatal(err)
	}
	return dir
}

// says fails unless a page has all these texts, and nothing that it would load from elsewhere.
func says(t *testing.T, path string, wants ...string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wants {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
	for _, outside := range []string{`src="http`, `href="http`, "@import", "<script", "url(", "%!"} {
		if strings.Contains(string(text), outside) {
			t.Errorf("%s has %s", path, outside)
		}
	}
	return string(text)
}

func TestReports(t *testing.T) {
	t.Parallel()
	r, ticks := found(t)
	dir := kept(t, t.TempDir(), r, ticks)
	if err := Write(dir, Languages...); err != nil {
		t.Fatal(err)
	}
	for language, wants := range map[string][]string{
		"en": {
			`<html lang="en">`, "Unlogged &lt;tables&gt;", "What does WAL cost?",
			"TPS with Tables unlogged, Clients 1 is 4.8 times that with Tables logged, Clients 1 (4.8 to 4.8 in the pairs of runs of a round; P = 0.1).",
			"These are 4 comparisons. If no setting differed from another one, 0.4 of them would seem to on average, by chance.",
			"TPS: between Tables half, Clients 4 and Tables logged, Clients 4 no difference can be told: the runs overlap: 101 to 103 against 101 to 103.",
			"a client said &lt;b&gt;no&lt;/b&gt;", "not observed: it was lost", "shared_buffers", "262144 8kB", "PostgreSQL 15.20 on x86", "2 CPUs, A CPU", "pgbench -c 4 db", "by howdah 1.2", "name: tables",
			"Something else disturbed the measurement", "If that is left aside: Locks on rows limit it", "75 % of the active sessions waited for a lock.", "3 of 3 runs were disturbed: Other programs used 25 % of the machine",
			"kill -9", "process 7 is gone", "all copies are ready again", "m1 on zone-a → m2 on zone-b (crash): 0.40 s", "nobody saw how long", "run pgbench, after its warm-up, which does not count: clients ‹Clients›, scripts tpcb-like × 2 &#43; (sql SELECT 1), seconds 3", "own_figure",
			"Tables logged: The medians grow by less than 10 % a doubling after 1 clients", "Throughput by load", "Throughput each second", "Throughput compared",
		},
		"ja": {
			`<html lang="ja">`, "UNLOGGED テーブル", "TPS：テーブル unlogged, クライアント数 1 は テーブル logged, クライアント数 1 の 4.8 倍です（各組の比 4.8～4.8、P = 0.1）。", "比較は 4 件あります。設定間に差がまったくなくても、平均 0.4 件は", "差があるとは言えません（実行結果が重なっています：101～103 と 101～103）",
			"外乱を除けば：行ロックがボトルネックです", "アクティブセッションの 75 % がロックを待っていました。", "3 回中 3 回は外乱がありました：ほかのプログラムがマシンの CPU の 25 % を使いました（許容は 3.0 %）。", "最も多い待機は Lock:transactionid で、平均 3 セッションです。",
			"そのうち平均 3 セッションは branches を待っていました。", "クライアント数</text>",
		},
	} {
		text := says(t, filepath.Join(dir, FileName(language)), wants...)
		if strings.Count(text, "<svg") != 6 {
			t.Errorf("%s: it has %d plots", language, strings.Count(text, "<svg"))
		}
		if language == "ja" && strings.Contains(text, "of the active sessions") {
			t.Error("a reason is in English")
		}
	}
	for _, name := range []string{"sweep-tps", "ratio-tables-tps", "seconds-tps", "latency", "waits", "transactions"} {
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
	r, _ := found(t)
	r.Points, r.Settings, r.Comparisons, r.Ended, r.Quick, r.Environment = r.Points[:1], nil, nil, time.Time{}, true, nil
	r.Schema, r.Target.Parameters = 1, map[string]string{"work_mem": "4MB"} // of an older release
	dir := kept(t, t.TempDir(), r, nil)
	if err := Write(dir, "en"); err != nil {
		t.Fatal(err)
	}
	says(t, filepath.Join(dir, "report.html"), "This run is not finished", "This was a quick run", "db:5432/x", "PostgreSQL 15.20", "work_mem", "4MB")
}

func TestSideBySide(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	r, ticks := found(t)
	first := kept(t, filepath.Join(parent, "before", "tables"), r, ticks)
	for n := range r.Points {
		if r.Points[n].Levels["tables"] == "logged" {
			r.Points[n].Figures["tps"] *= 2
		}
	}
	r.Environment.Database.Version, r.Ended = "PostgreSQL 16.1 on x86", time.Time{}
	second := kept(t, filepath.Join(parent, "after", "tables"), r, ticks)
	out := filepath.Join(parent, "out")
	s, paths, err := Compare(first, second, out, Languages...)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 2 || s.First.Name != "before" || s.Second.Name != "after" || len(s.Figures) != 6 || len(s.Only) != 0 {
		t.Errorf("%+v, %q", s, paths)
	}
	if f := s.Figures[0]; f.Ratio != 2 || !f.Carried || f.Setting != "tables=logged clients=1" {
		t.Errorf("%+v", f)
	}
	if f := s.Figures[2]; f.Ratio != 1 || f.Carried || f.Why == "" {
		t.Errorf("%+v", f)
	}
	text := says(t, filepath.Join(out, "compare.html"), "not measured in turns", "PostgreSQL 16.1", "before: ", "TPS with result after, Tables logged, Clients 1 is 2 times that with result before, Tables logged, Clients 1", "no difference can be told")
	if strings.Count(text, "<svg") != 5 {
		t.Errorf("%d plots", strings.Count(text, "<svg"))
	}
	says(t, filepath.Join(out, "compare.ja.html"), "交互に測定されたものではありません", "の 2 倍です（中央値の比、")
}

// A result comes from anybody. What it calls its figures leads to no place outside of its directory.
func TestNamesLeadNowhere(t *testing.T) {
	t.Parallel()
	r, ticks := found(t)
	for n := range r.Points {
		for name, value := range maps.Clone(r.Points[n].Figures) {
			r.Points[n].Figures["../../out/"+name] = value
			r.Points[n].Figures["/"+name+"/_tps"] = value
		}
	}
	for n := range ticks {
		ticks[n].Name = "../../out/x_tps"
	}
	e, err := Experiment(r)
	if err != nil {
		t.Fatal(err)
	}
	e.Compare = nil
	r.Sum(e)
	plots, err := writer{r: r, e: e, ticks: ticks, language: "en"}.plots()
	if err != nil || len(plots) < 3 {
		t.Fatalf("%d plots, %v", len(plots), err)
	}
	for _, p := range plots {
		if strings.ContainsAny(p.Name, `/\`) {
			t.Errorf("a plot is called %s", p.Name)
		}
	}
}

// Servers of other settings are told by what differs.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	r, _ := found(t)
	r.Resumed, r.PGBench = []time.Time{time.Unix(1790000050, 0)}, "pgbench (PostgreSQL) 15.20"
	other := *r.Environment
	other.Database.SizeBytes, other.Limits = 5, &machine.Limits{CPUs: 2}
	other.Database.Settings = map[string]environment.Setting{"work_mem": {Value: "9", Unit: "MB"}}
	r.Servers = []result.Server{
		{Settings: []string{"tables=logged clients=1", "tables=logged clients=4"}, Environment: *r.Environment},
		{Settings: []string{"tables=unlogged clients=1", "tables=unlogged clients=4"}, Environment: other},
		{Settings: []string{"tables=half clients=1"}, Environment: *r.Environment},
	}
	dir := kept(t, t.TempDir(), r, nil)
	if err := Write(dir, Languages...); err != nil {
		t.Fatal(err)
	}
	text := says(t, filepath.Join(dir, "report.html"), "With Tables unlogged</td>", "pgbench (PostgreSQL) 15.20</td>", "went on at 2026-09-21 14:14:10 UTC: runs before and after", "Limits of its class 2 CPU; work_mem 9 MB; shared_buffers –</td>")
	if strings.Contains(text, "With Tables half") {
		t.Error("a server that does not differ is told")
	}
	says(t, filepath.Join(dir, "report.ja.html"), "テーブル unlogged の場合")
}

func TestPointsThatTheGeneratorLimitsAreHollow(t *testing.T) {
	t.Parallel()
	r, ticks := found(t)
	for n, s := range r.Settings {
		if s.Setting == "tables=logged clients=4" {
			r.Settings[n].Limits = []result.Limit{{Finding: verdict.Finding{Cause: verdict.Client}}, {Prefix: "read_", Finding: verdict.Finding{Cause: verdict.WAL}}}
		}
	}
	e, err := Experiment(r)
	if err != nil {
		t.Fatal(err)
	}
	w := writer{r: r, e: e, ticks: ticks, language: "en"}
	f := swept(e)
	for _, knee := range w.knees() {
		if strings.HasSuffix(knee, "There the load generator is the limit: the server may do more.") != strings.HasPrefix(knee, "Tables logged: ") {
			t.Errorf("%s", knee)
		}
	}
	full := draw.GlyphStyle{Shape: draw.CircleGlyph{}, Radius: 2}
	for n, l := range w.lines(*f, "tps") {
		for _, p := range l.points {
			_, ring := p.glyph(full).Shape.(draw.RingGlyph)
			if want := n == 0 && p.x == 4; p.hollow != want || ring != want {
				t.Errorf("line %d at %v: %t, %t", n, p.x, p.hollow, ring)
			}
		}
	}
	before, err := w.sweep(*f, "tps")
	if err != nil {
		t.Fatal(err)
	}
	r.Settings[1].Limits, r.Settings[0].Limits = nil, nil
	if after, err := w.sweep(*f, "tps"); err != nil || bytes.Equal(before.SVG, after.SVG) {
		t.Errorf("nothing of it is drawn: %v", err)
	}
}

// What is not of the same thing is not compared. The servers may differ.
func TestResultsThatAreUnlike(t *testing.T) {
	t.Parallel()
	const values = "values: {scale: 1, class: db.m5.large, seconds: 3}\nserver: {class: $class}\nneeds: [howdah]\n"
	with := func(pairs ...string) writer {
		text := strings.NewReplacer("scale: 1}", "scale: $scale}", "seconds: 3}", "seconds: $seconds}").Replace(source) + values
		text = strings.NewReplacer(pairs...).Replace(text)
		e, err := experiment.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return writer{r: &result.Result{Experiment: e.Name}, e: e}
	}
	quick := with()
	quick.r.Quick = true
	for words, other := range map[string]writer{
		"":                           with("db.m5.large", "db.m5.xlarge", "levels: [1, 4]", "levels: [1, 8]", "runs: 3", "runs: 5"),
		"experiments tables and all": with("name: tables\ntitle", "name: all\ntitle"),
		"quick run":                  quick,
		"clients, and of the other tables, users": with("name: clients", "name: users", "$clients", "$users"),
		"different steps":                         with("SELECT 1", "SELECT 2"),
		"scale is 1 in one, and 300 in the other": with("values: {scale: 1", "values: {scale: 300"),
		"seconds is 3 in one":                     with("seconds: 3}\nserver", "seconds: 4}\nserver"),
	} {
		if why := unlike(with(), other); words == "" && why != "" || !strings.Contains(why, words) {
			t.Errorf("%q: %q", words, why)
		}
	}
}

func TestNamesOfTwoDirectories(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]string{
		{"a/e1", "b/e1", "a", "b"}, {"lab/e1", "lab/e1-2", "e1", "e1-2"}, {"e1", "old/e1", "1", "2"}, {"x", "x", "1", "2"}, {"p/a/e1/", "q/a/e1", "p", "q"},
	} {
		if got := apart(c[0], c[1]); got != [2]string{c[2], c[3]} {
			t.Errorf("%s, %s: %q", c[0], c[1], got)
		}
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

// What the verdicts can say can be said in Japanese: their keys are looked for in their source.
func TestVerdictsInJapanese(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../verdict/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	reasons := map[string]bool{"device_read": true, "device_write": true, "read_limit": true, "write_limit": true}
	findings := map[string]bool{}
	reasonForm := regexp.MustCompile(`reason\("(\w+)",`)
	keyForm := regexp.MustCompile(`"((?:client|cpu|none|checkpoint|wal|unknown)_(?:cpu|rate|class|machine|yet|computes|dip|images|insert|turns|beyond))"`)
	causeForm := regexp.MustCompile(`Cause = "(\w+)"`)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reasonForm.FindAllStringSubmatch(string(text), -1) {
			reasons[m[1]] = true
		}
		for _, m := range causeForm.FindAllStringSubmatch(string(text), -1) {
			findings[m[1]] = true
		}
		for _, m := range keyForm.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "client_cpu" || strings.Contains(string(text), "Key: \"client_cpu\"") {
				findings[m[1]] = true
			}
		}
	}
	for _, always := range []string{"client", "cpu", "checkpoint"} {
		delete(findings, always) // these have several sentences, each with a key of its own
	}
	for key := range reasons {
		if reasonsJapanese[key] == "" {
			t.Errorf("the reason %s is not translated", key)
		}
	}
	for key := range findings {
		if japanese[key] == "" {
			t.Errorf("the verdict %s is not translated", key)
		}
	}
	for key := range reasonsJapanese {
		if !reasons[key] {
			t.Errorf("no verdict has the reason %s", key)
		}
	}
}

func TestFilledReasons(t *testing.T) {
	t.Parallel()
	figures := []verdict.Figure{{Name: "standby.db.b.flush_lag_seconds", Value: 0.034, Unit: "share", Threshold: 0.5}, {Name: "x", Value: 12.345, Unit: "ms"}, {Name: "y", Value: 2.5e7, Unit: "bytes/s"}}
	if got := filled("{0n} {0} {0t} {1} {2}", figures); got != "db.b 3.4 % 50 % 12.3 ms 25 MB/s" {
		t.Errorf("%s", got)
	}
}

func TestWhatFiguresAreCalled(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"tps": "Throughput (TPS)", "read_tps": "read: Throughput (TPS)", "read_iops": "Reads (IOPS)", "read_read_iops": "read: Reads (IOPS)", "behind": "behind", "latency_p99.9_ms": "p99.9 (ms)", "aas_cpu": "CPU",
		"client_cpu_per_1000_nopm": "Generator's CPU for 1,000 NOPM (s/min)", "a_new_order_p99_ms": "a: New-Order p99 (ms)",
	} {
		if got := labelled(name, "en"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	names := map[string]bool{"x": true, "aas": true, "latency_p99_ms": true, "tps": true, "read_tps": true, "latency_p50_ms": true}
	if got := strings.Join(inOrder(names), " "); got != "tps latency_p50_ms latency_p99_ms aas x read_tps" {
		t.Error(got)
	}
}

func TestShortFigures(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{0: "0", 1234.56: "1235", 0.123456: "0.1235", 99.99: "99.99", -1234.5: "-1234"} {
		if got := short(f); got != want {
			t.Errorf("%v: %s", f, got)
		}
	}
	for f, want := range map[float64]string{0: "0", 9500: "9500", 25000: "25k", 12_500_000: "12.5M", 0.02: "0.02"} {
		if got := tickLabel(f); got != want {
			t.Errorf("%v: %s", f, got)
		}
	}
	for f, want := range map[float64]string{0: "0 B", 1024: "1 KiB", 3 << 29: "1.5 GiB"} {
		if got := bytesText(f); got != want {
			t.Errorf("%v: %s", f, got)
		}
	}
}
