package shape

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var functionOfShell = regexp.MustCompile(`(?m)^([A-Za-z_]+)\(\)`)

// TestAScriptDefinesAFunctionOnce: the second one of a name would quietly take the place of the first.
func TestAScriptDefinesAFunctionOnce(t *testing.T) {
	var scripts []string
	for _, pattern := range []string{"../../scripts/*", "../../extensions/*.sh", "../../extensions/*/*.sh"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, found...)
	}
	functions := 0
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, m := range functionOfShell.FindAllStringSubmatch(string(text), -1) {
			if there[m[1]] {
				t.Errorf("%s defines %s twice", path, m[1])
			}
			there[m[1]] = true
			functions++
		}
	}
	if functions < 50 {
		t.Errorf("only %d functions were found", functions)
	}
}
