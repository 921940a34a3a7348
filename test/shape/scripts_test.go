package shape

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var shellFunction = regexp.MustCompile(`(?m)^([A-Za-z_][A-Za-z0-9_]*)\(\) *[{(]`)

// In a shell the last function of a name takes the place of those before it, and nothing says so.
func TestScriptsDefineAFunctionOnce(t *testing.T) {
	found := 0
	for _, pattern := range []string{"scripts/*", ".ci/*", "extensions/*.sh", "extensions/*/test.sh"} {
		scripts, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, script := range scripts {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			defined := map[string]bool{}
			for _, f := range shellFunction.FindAllStringSubmatch(string(text), -1) {
				if defined[f[1]] {
					t.Errorf("%s defines %s twice", script, f[1])
				}
				defined[f[1]] = true
				found++
			}
		}
	}
	if found < 50 {
		t.Errorf("it found %d functions in all scripts", found)
	}
}
