package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"howdah/internal/cli/screen"
)

// problemCodes returns the codes that status can show: the constants of member.Problem, and those
// of package admin whose names begin with "Problem".
func problemCodes(t *testing.T) []string {
	t.Helper()
	var codes []string
	for file, wanted := range map[string]func(*ast.ValueSpec) bool{
		"../../internal/admin/problem.go": func(v *ast.ValueSpec) bool { return strings.HasPrefix(v.Names[0].Name, "Problem") },
		"../../internal/model/member/member.go": func(v *ast.ValueSpec) bool {
			kind, ok := v.Type.(*ast.Ident)
			return ok && kind.Name == "Problem"
		},
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		ast.Inspect(parsed, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 || !wanted(v) {
				return true
			}
			literal, ok := v.Values[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			if code, err := strconv.Unquote(literal.Value); err == nil && code != "" {
				codes, found = append(codes, code), found+1
			}
			return true
		})
		if found < 10 {
			t.Errorf("only %d codes in %s", found, file)
		}
	}
	return codes
}

// TestEveryProblemHasItsPage checks that each problem has a page with all that a page must say, and
// that the index names it.
func TestEveryProblemHasItsPage(t *testing.T) {
	index, err := os.ReadFile("../../docs/runbook/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range append(problemCodes(t), "no-limits", "shared-user", "host-keys", "control-plane-down") {
		text, err := os.ReadFile("../../docs/runbook/" + code + ".md")
		if err != nil {
			t.Error(err)
			continue
		}
		for _, heading := range []string{
			"# " + code + ": ", "## What it means\n", "## Are data at risk?\n", "## What to do\n", "## How to see that it is over\n", "## What not to do\n",
		} {
			if !strings.Contains(string(text), heading) {
				t.Errorf("%s.md lacks %q", code, strings.TrimSpace(heading))
			}
		}
		if !strings.Contains(string(index), "("+code+".md)") {
			t.Errorf("the index lacks %s", code)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	command = regexp.MustCompile("(?m)(?:^(?:[a-z]*)\\$ (?:bin/)?|^      [a-z]+\\$ |`)howdah ([a-z][^`#|<>\n]*)")
)

// pages returns the names of all pages of the documentation.
func pages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	return append(files, "../../docs/cli.md", "../../README.md", "../../ARCHITECTURE.md", "../../CONTRIBUTING.md")
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, file := range pages(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := filepath.Join(filepath.Dir(file), path)
			if path == "" {
				target = file
			}
			there, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
				err = nil
			}
			if err != nil || anchor != "" && !hasAnchor(string(there), anchor) {
				t.Errorf("%s: the link %s leads nowhere", file, m[1])
			}
		}
	}
}

var notInAnchors = regexp.MustCompile(`[^a-z0-9 _-]`)

// hasAnchor reports whether a heading of the text has the anchor, as forges make it.
func hasAnchor(text, anchor string) bool {
	for line := range strings.Lines(text) {
		heading, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " ")
		if ok && strings.HasPrefix(line, "#") &&
			strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// TestCommandsInDocsExist checks every command and flag that a page names.
func TestCommandsInDocsExist(t *testing.T) {
	checked := 0
	for _, file := range pages(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", ""), -1) {
			checked++
			if why := misuse(strings.Fields(m[1])); why != "" {
				t.Errorf("%s: howdah %s: %s", file, strings.TrimSpace(m[1]), why)
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d commands were found", checked)
	}
}

// misuse says what is wrong with a command line. It returns "" if nothing is.
func misuse(words []string) string {
	cmd, rest, err := newRoot(newOptions(screen.Std())).Find(words)
	if err != nil {
		return err.Error()
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && rest[0] != "…" {
		return "there is no " + rest[0]
	}
	for _, word := range rest {
		name, isFlag := strings.CutPrefix(strings.TrimRight(word, ".,;:)"), "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && name != "help" {
			return "there is no --" + name
		}
	}
	return ""
}
