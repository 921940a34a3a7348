package cli

import (
	"os/exec"
	"testing"
)

// odd has words that shells and libpq could take for something else.
var odd = []string{"plain", "", "two words", "it's", `"quoted"`, "$HOME", "`id`", `back\slash`, "a;b", "*", "~", "new\nline"}

func TestShellWordsAreReadBack(t *testing.T) {
	for _, word := range odd {
		for name, quoted := range map[string]string{
			"shellQuote": ShellQuote(word), "shellWord": ShellWord(word), "shellQuoteDouble": ShellQuoteDouble(word),
		} {
			out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s' "+quoted).Output()
			if err != nil || string(out) != word {
				t.Errorf("%s: the shell reads %s as %q: %v", name, quoted, out, err)
			}
		}
	}
}

func TestInfoValue(t *testing.T) {
	for value, want := range map[string]string{
		"plain": "plain", "": "''", "two words": "'two words'", "it's": `'it\'s'`, `a\b`: `'a\\b'`,
	} {
		if got := InfoValue(value); got != want {
			t.Errorf("%q: %s, not %s", value, got, want)
		}
	}
}
