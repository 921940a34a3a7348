package programs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// explained are the tests of a suite that are known to fail, by their names, with the reason. A * in a name
// stands for anything.
type explained map[string]string

// readExplained reads a list: a reason in lines that begin with #, and below it the names, one a line.
func readExplained(text string) (explained, error) {
	known := explained{}
	var reason []string
	names := true // the line before had one
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "#"):
			if names {
				reason = nil
			}
			names = false
			reason = append(reason, strings.TrimSpace(strings.TrimLeft(line, "#")))
		case len(reason) == 0:
			return nil, fmt.Errorf("line %d: %s has no reason", n+1, line)
		default:
			names = true
			known[line] = strings.Join(reason, " ")
		}
	}
	return known, nil
}

// compare returns the tests that failed without an explanation, and the names of the list that none
// of the failed ones has.
func (e explained) compare(failed []string) (unexpected, passed []string) {
	used := map[string]bool{}
	for _, name := range failed {
		found := false
		for pattern := range e {
			if matches(pattern, name) {
				used[pattern], found = true, true
			}
		}
		if !found {
			unexpected = append(unexpected, name)
		}
	}
	for pattern := range e {
		if !used[pattern] {
			passed = append(passed, pattern)
		}
	}
	slices.Sort(unexpected)
	slices.Sort(passed)
	return unexpected, passed
}

func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(name)
}

// failures returns the names of the tests that failed by what a suite printed: the first group of the
// pattern, each once.
func failures(output string, pattern *regexp.Regexp) []string {
	var names []string
	for _, match := range pattern.FindAllStringSubmatch(output, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// judge fails the test for each failure that the list in testdata does not explain, and tells of each
// explained one that did not fail.
func judge(t *testing.T, list string, failed []string) {
	t.Helper()
	text, err := os.ReadFile(testdata(t, list))
	if err != nil {
		t.Fatal(err)
	}
	known, err := readExplained(string(text))
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	unexpected, passed := known.compare(failed)
	for _, name := range unexpected {
		t.Errorf("fails, and %s does not say why: %s", list, name)
	}
	for _, name := range passed {
		t.Logf("%s says that it fails, and it does not: %s", list, name)
	}
	t.Logf("%d fail, and are explained", len(failed)-len(unexpected))
}

func TestExplained(t *testing.T) {
	known, err := readExplained("# of the server\n# and its files\na.b\n\n\nc.*\n# another\nd[1]\n")
	if err != nil || len(known) != 3 || known["a.b"] != "of the server and its files" || known["c.*"] != known["a.b"] || known["d[1]"] != "another" {
		t.Errorf("%v, %v", known, err)
	}
	unexpected, passed := known.compare([]string{"x", "c.1", "d[1]", "c.2"})
	if !slices.Equal(unexpected, []string{"x"}) || !slices.Equal(passed, []string{"a.b"}) {
		t.Errorf("unexpected %q, passed %q", unexpected, passed)
	}
	if _, err := readExplained("a\n"); err == nil {
		t.Error("a name without a reason is no error")
	}
	said := "ok\nFAIL: test_a (m.C.test_a)\nERROR: test_b (m.C.test_b) (i=1)\nERROR: test_b (m.C.test_b) (i=2)\n"
	if got := failures(said, djangoFailure); !slices.Equal(got, []string{"m.C.test_a", "m.C.test_b"}) {
		t.Errorf("%q", got)
	}
	said = "FAILED test/d.py::C::test_a[x - y] - AssertionError: no\nERROR test/d.py::C::test_b\n"
	if got := failures(said, pytestFailure); !slices.Equal(got, []string{"test/d.py::C::test_a[x - y]", "test/d.py::C::test_b"}) {
		t.Errorf("%q", got)
	}
}
