package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGenerated fails when the packages in the tree are not what the models make.
func TestGenerated(t *testing.T) {
	source := os.Getenv("HOWDAH_BOTOCORE")
	if source == "" {
		testkit.Missing(t, "the path of a botocore wheel in HOWDAH_BOTOCORE: see CONTRIBUTING.md")
	}
	data, err := openData(source)
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("%s is out of date: run go generate ./api\n%s", name, diff)
		}
	}
	for _, target := range targets {
		files, err := filepath.Glob(filepath.Join("..", target.Package, "*_gen.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if _, ok := want[strings.TrimPrefix(file, "../")]; !ok {
				t.Errorf("%s is generated no longer", file)
			}
		}
	}
}

// TestRender renders a small model: testdata/render.txt holds the model, a line
// ----, and the files that it becomes.
func TestRender(t *testing.T) {
	const golden = "testdata/render.txt"
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	input, want, ok := strings.Cut(string(text), "\n----\n")
	if !ok {
		t.Fatalf("%s has no line ----", golden)
	}
	m := new(model)
	if err := json.Unmarshal([]byte(input), m); err != nil {
		t.Fatal(err)
	}
	files, err := render("tiny", m)
	if err != nil {
		t.Fatal(err)
	}
	got := list(files)
	if *update {
		if err := os.WriteFile(golden, []byte(input+"\n----\n"+got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run go test -update if this is right (-want +got):\n%s", diff)
	}
	if strings.Contains(got, "SECRET TEXT") {
		t.Error("documentation of the model reached the output")
	}
}

func list(files map[string][]byte) string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString("== " + name + " ==\n" + string(files[name]))
	}
	return b.String()
}

func TestRenderRefuses(t *testing.T) {
	const head = `{"operations":{"A":{"name":"A","input":{"shape":"In"},"errors":[`
	tests := []struct{ name, model, want string }{
		{"flattened list", head + `]}},"shapes":{"In":{"type":"structure","members":{"B":{"shape":"L"}}},"L":{"type":"list","flattened":true,"member":{"shape":"S"}},"S":{"type":"string"}}}`, "flattened"},
		{"attribute", head + `]}},"shapes":{"In":{"type":"structure","members":{"B":{"shape":"S","xmlAttribute":true}}},"S":{"type":"string"}}}`, "attributes"},
		{"list of numbers", head + `]}},"shapes":{"In":{"type":"structure","members":{"B":{"shape":"L"}}},"L":{"type":"list","member":{"shape":"I"}},"I":{"type":"integer"}}}`, "list of integer"},
		{"map of lists", head + `]}},"shapes":{"In":{"type":"structure","members":{"B":{"shape":"M"}}},"M":{"type":"map","key":{"shape":"S"},"value":{"shape":"L"}},"L":{"type":"list","member":{"shape":"S"}},"S":{"type":"string"}}}`, "map of S to L"},
		{"unknown shape", head + `]}},"shapes":{"In":{"type":"structure","members":{"B":{"shape":"Lost"}}}}}`, "unknown shape Lost"},
		{"lower-case structure", `{"operations":{"A":{"name":"A","input":{"shape":"in"}}},"shapes":{"in":{"type":"structure"}}}`, "not a Go name"},
		{"no input", `{"operations":{"A":{"name":"A"}}}`, "no input"},
		{"no wrapper", `{"operations":{"A":{"name":"A","input":{"shape":"In"},"output":{"shape":"In"}}},"shapes":{"In":{"type":"structure"}}}`, "without a wrapper"},
		{"two errors of one name", head + `{"shape":"XFault"},{"shape":"XException"}]}},"shapes":{"In":{"type":"structure"},"XFault":{"error":{"code":"X"}},"XException":{"error":{"code":"Y"}}}}`, "one name"},
		{"error without a code", head + `{"shape":"XFault"}]}},"shapes":{"In":{"type":"structure"},"XFault":{"exception":true}}}`, "no code"},
		{"pattern that Go has not", head + `]}},"shapes":{"In":{"type":"structure","members":{"B":{"shape":"S"}}},"S":{"type":"string","pattern":"a(?=b)"}}}`, "pattern of S"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := new(model)
			if err := json.Unmarshal([]byte(tt.model), m); err != nil {
				t.Fatal(err)
			}
			if _, err := render("tiny", m); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRun(t *testing.T) {
	source, out := t.TempDir(), t.TempDir()
	tiny := `{"metadata":{"apiVersion":"1","endpointPrefix":"x"},"operations":{"GetCallerIdentity":{"name":"GetCallerIdentity","input":{"shape":"In"}},
		"Other":{"name":"Other","input":{"shape":"OtherIn"}}},"shapes":{"In":{"type":"structure","members":{}},"OtherIn":{"type":"structure","members":{}}}}`
	for _, target := range targets {
		write(t, filepath.Join(source, "data", target.Model, "service-2.json"), tiny)
	}
	stale := filepath.Join(out, "sts", "old_gen.go")
	write(t, stale, "package sts")
	kept := filepath.Join(out, "sts", "hand.go")
	write(t, kept, "package sts")
	if err := run(source, out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("a stale file is still there: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a file of ours: %v", err)
	}
	rds, err := os.ReadFile(filepath.Join(out, "rds", "service_gen.go"))
	if err != nil || !strings.Contains(string(rds), `{Name: "Other",`) {
		t.Errorf("rds: %v\n%s", err, rds)
	}
	sts, err := os.ReadFile(filepath.Join(out, "sts", "service_gen.go"))
	if err != nil || strings.Contains(string(sts), `"Other"`) || !strings.Contains(string(sts), `"GetCallerIdentity"`) {
		t.Errorf("sts: %v\n%s", err, sts)
	}
	if err := run(filepath.Join(source, "nowhere"), out); err == nil {
		t.Error("a source that does not exist is accepted")
	}
	if err := run(out, out); err == nil {
		t.Error("a source without models is accepted")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A model keeps the order of its members: it is the order of elements in answers.
func TestMembersKeepTheirOrder(t *testing.T) {
	data := fstest.MapFS{"x/service-2.json": {Data: []byte(`{"shapes":{"S":{"members":{"Z":{"shape":"a"},"A":{"shape":"b"},"M":{"shape":"c"}}}}}`)}}
	m, err := readModel(data, "x")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, member := range m.Shapes["S"].Members {
		got = append(got, member.Name+member.Shape)
	}
	if diff := cmp.Diff([]string{"Za", "Ab", "Mc"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPatternFields(t *testing.T) {
	tests := map[string][]string{
		"":                         nil,
		`[a-z]+`:                   {"Pattern: `[a-z]+`"},
		"a`b":                      {"Pattern: \"a`b\""},
		`[\u0020-\u00FF]*`:         {"Pattern: `[\\x{0020}-\\x{00FF}]*`"},
		`a(?!.*--)b|c(?!.*\.\.)d*`: {"Pattern: `ab|cd*`", `Without: []string{"--", ".."}`},
	}
	for pattern, want := range tests {
		got, err := patternFields(pattern)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", pattern, err, diff)
		}
	}
}
