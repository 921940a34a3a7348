package experiment

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const small = `
name: small
title: {en: Small, ja: 小}
question: {en: "Is it small?"}
values: {scale: 2, seconds: 5, size: "${scale}0 rows"}
factors:
  - {name: tables, title: {en: Tables}, levels: [logged, unlogged]}
  - {name: clients, title: {en: Clients}, levels: [1, 16]}
runs: 2
prepare:
  - init: {scale: $scale}
each:
  - sql: {text: "SELECT '${size} of ${tables}'", figure: took}
  - pgbench: {scripts: [{builtin: tpcb-like}, {sql: SELECT 1, weight: 20}], clients: $clients, seconds: $seconds}
  - catch_up: {figure: late, within: 60}
compare:
  - {factor: tables, base: logged, figure: tps}
quick: {values: {seconds: 1}, levels: {clients: [4]}, runs: 1}
`

func read(t *testing.T) *Experiment {
	t.Helper()
	e, err := Read([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSettingsTakeTurns(t *testing.T) {
	t.Parallel()
	e := read(t)
	var keys []string
	for _, p := range e.Points() {
		keys = append(keys, e.Key(p.Setting))
	}
	want := []string{
		"tables=logged clients=1", "tables=logged clients=16", "tables=unlogged clients=1", "tables=unlogged clients=16",
		"tables=unlogged clients=16", "tables=unlogged clients=1", "tables=logged clients=16", "tables=logged clients=1",
	}
	if !slices.Equal(keys, want) {
		t.Errorf("%q", keys)
	}
	if e.Title.In("ja") != "小" || e.Title.In("en") != "Small" || e.Question.In("ja") != "Is it small?" {
		t.Errorf("%+v", e)
	}
}

func TestAQuickRun(t *testing.T) {
	t.Parallel()
	e := read(t)
	q := e.Quickly()
	if len(q.Points()) != 2 || q.Values["seconds"] != 1.0 || q.Values["scale"] != 2.0 {
		t.Errorf("%+v", q)
	}
	if len(e.Points()) != 8 || e.Values["seconds"] != 5.0 {
		t.Errorf("the experiment itself was changed: %+v", e)
	}
}

func TestStepsAreFilledIn(t *testing.T) {
	t.Parallel()
	e := read(t)
	s := Setting{"tables": "unlogged", "clients": 16.0}
	a, err := e.Arguments(e.Each[0], s)
	if err != nil || !reflect.DeepEqual(a, Arguments{SQL: &SQL{Text: "SELECT '20 rows of unlogged'", Figure: "took", Each: 1}}) {
		t.Errorf("%+v, %v", a.SQL, err)
	}
	a, err = e.Arguments(e.Each[1], s)
	want := &PGBench{Scripts: []Script{{Builtin: "tpcb-like", Weight: 1}, {SQL: "SELECT 1", Weight: 20}}, Clients: 16, Seconds: 5, Protocol: "simple", Through: WayDirect}
	if err != nil || !reflect.DeepEqual(a.PGBench, want) {
		t.Errorf("%+v, %v", a.PGBench, err)
	}
	if a, err = e.Arguments(e.Prepare[0], s); err != nil || a.Init.Scale != 2 || a.Init.Unlogged {
		t.Errorf("%+v, %v", a.Init, err)
	}
	if a, err = e.Arguments(e.Each[2], s); err != nil || *a.CatchUp != (CatchUp{"late", 60}) {
		t.Errorf("%+v, %v", a.CatchUp, err)
	}
}

// Values that name each other many times are refused, before they fill the memory or take hours.
func TestValuesThatGrow(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]string{`""`: "more than 10000 times", strings.Repeat("x", 600_000): "more than 1048576 bytes"} {
		values := "a: " + first
		for n := range 6 {
			values += fmt.Sprintf(", %c: %q", 'b'+n, strings.Repeat(fmt.Sprintf("${%c}", 'a'+n), 60))
		}
		_, err := Read([]byte(strings.Replace(small, `size: "${scale}0 rows"`, values+`, size: "${g}"`, 1)))
		if !errors.Is(err, ErrForm) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100v", err)
		}
	}
}

// What is wrong is refused when the file is read, and not in the middle of a night.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"name: small=>name: Small":                                        `name: "Small"`,
		"title: {en: Small, ja: 小}=>title: {ja: 小}":                       "needs an English text",
		"runs: 2=>runs: 0":                                                "runs: 0",
		"runs: 2=>runs: two":                                              "cannot unmarshal",
		"runs: 2=>runs: 2\nrunz: 3":                                       "runz",
		"levels: [1, 16]=>levels: [1, 1]":                                 "there twice",
		"levels: [1, 16]=>levels: []":                                     "clients has no level",
		"levels: [1, 16]=>levels: [{a: 1}]":                               "no text, number or truth",
		"levels: [1, 16]=>levels: [0]":                                    "clients are 0",
		"name: clients=>name: tables":                                     "two of the name tables",
		"clients: $clients=>clients: $users":                              "nothing has the name users",
		"${tables}=>${table}":                                             `nothing has the name "table"`,
		"scale: 2=>scale: $scale":                                         "in a circle",
		"catch_up: {figure: late=>wait: {figure: late":                    "there is no such step",
		"seconds: $seconds=>secs: 3":                                      "secs",
		"seconds: $seconds=>seconds: 1, transactions: 3":                  "either seconds or transactions",
		"builtin: tpcb-like=>builtin: tpcc":                               "pgbench has no script tpcc",
		"init: {scale: $scale}=>init: {scale: 0}":                         "scale is 0",
		"init: {scale: $scale}=>init: {scale: 1, tables: some}":           "neither logged nor unlogged",
		"init: {scale: $scale}=>{init: {scale: 1}, sql: {text: x}}":       "a step has one kind",
		"base: logged=>base: half":                                        "half is no level of tables",
		"factor: tables, base=>factor: table, base":                       `"table" is none`,
		"quick: {values: {seconds: 1}=>quick: {values: {second: 1}":       "there is no value second",
		"levels: {clients: [4]}=>levels: {users: [4]}":                    "there is no factor users",
		"levels: {clients: [4]}=>levels: {tables: [unlogged]}":            "logged is no level of tables",
		"within: 60=>within: 0":                                           "within how many seconds",
		"builtin: tpcb-like=>sql: \"\\\\shell id\"":                       "runs programs",
		"builtin: tpcb-like=>sql: \"SELECT 1;\\n \\\\SetShell a id\"":     "runs programs",
		"builtin: tpcb-like=>sql: \"\\\\ \\\\\\n shell id\"":              "runs programs",
		"{text: \"SELECT '${size} of ${tables}'\", figure: took}=>{x: 1}": "x",
	} {
		from, to, _ := strings.Cut(change, "=>")
		if !strings.Contains(small, from) {
			t.Fatalf("%q is not there", from)
		}
		_, err := Read([]byte(strings.Replace(small, from, to, 1)))
		if !errors.Is(err, ErrForm) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
	for _, text := range []string{"", "[]", "name: [", "a: 1\na: 2"} {
		if _, err := Read([]byte(text)); !errors.Is(err, ErrForm) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFillingIn(t *testing.T) {
	t.Parallel()
	e := &Experiment{Values: map[string]any{"n": 3.0, "text": "x", "list": []any{"$n", "$text"}, "deep": map[string]any{"a": "$list"}}}
	in := map[string]any{"number": "$n", "in_text": "${n}-${text}", "list": "$list", "deep": "$deep", "as_is": []any{true, nil, 1.5, "$ 5", "a$n"}}
	kept := maps.Clone(in)
	out, err := e.Fill(in, Setting{"n": 4.0})
	want := map[string]any{
		"number": 4.0, "in_text": "4-x", "list": []any{4.0, "x"}, "deep": map[string]any{"a": []any{4.0, "x"}}, "as_is": []any{true, nil, 1.5, "$ 5", "a$n"},
	}
	if err != nil || !reflect.DeepEqual(out, want) || !reflect.DeepEqual(in, kept) {
		t.Errorf("%v, %v", out, err)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]any{"": nil, "16": 16.0, "0.5": 0.5, "x": "x", "true": true} {
		if got := Word(value); got != want {
			t.Errorf("%v: %q", value, got)
		}
	}
}

// All that is built in can be read, and is short when it is quick.
func TestWhatIsBuiltIn(t *testing.T) {
	t.Parallel()
	all, err := BuiltIn()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d: %v", len(all), err)
	}
	for _, e := range all {
		if e.Runs < 3 || e.Title.Japanese == "" || e.Question.Japanese == "" || e.Document == "" && !strings.HasPrefix(e.Name, "drill") {
			t.Errorf("%s lacks runs, Japanese, or its document: %+v", e.Name, e)
		}
		if n := len(e.Quickly().Points()); n > 12 {
			t.Errorf("a quick run of %s has %d points", e.Name, n)
		}
	}
}
