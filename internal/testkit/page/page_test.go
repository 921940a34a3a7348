package page

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const text = "# Title\n\n```\n$ not this\n# nor that\n```\n## One\nSay:\n\n```sh\n# a comment, no heading\necho a\n```\n\n```python\nprint()\n```\n```sh\necho b |\n    cat\n```\n### Two\n```sh\nfalse\n```\n"

func TestBlocks(t *testing.T) {
	got, err := Blocks(text)
	want := []Block{{"One", "# a comment, no heading\necho a\n", 11}, {"One", "echo b |\n    cat\n", 19}, {"Two", "false\n", 24}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	if got, err := Blocks("text alone\n"); err != nil || len(got) > 0 {
		t.Errorf("of a page without commands: %v, %v", got, err)
	}
	if _, err := Blocks("a\n```sh\necho\n"); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("a block that is open: %v", err)
	}
}

// failing is a test that may fail without the one that has it.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) { f.said = format }

func TestRun(t *testing.T) {
	shell := Shell{Dir: t.TempDir(), Env: append(os.Environ(), "WORD=b"), Within: 10 * time.Second}
	if out := shell.Run(t, Block{Commands: "echo a >file\ncat file\necho $WORD >&2\n"}); out != "a\nb\n" {
		t.Errorf("printed is %q", out)
	}
	for _, commands := range []string{"false\ntrue\n", "false | true\n", "echo $UNKNOWN_WORD\n"} {
		f := &failing{TB: t}
		shell.Run(f, Block{Commands: commands})
		if f.said == "" {
			t.Errorf("%q does not fail", commands)
		}
	}
}
