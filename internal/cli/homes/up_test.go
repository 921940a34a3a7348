package homes

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLastWords(t *testing.T) {
	log := filepath.Join(t.TempDir(), "serve.log")
	if words := lastWords(log); words != "" {
		t.Errorf("no log, but the words %q", words)
	}
	text := "{\"level\":\"INFO\"}\nhowdah: first\nhowdah: listen: taken\n{\"level\":\"WARN\"}\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if words := lastWords(log); words != ": listen: taken" {
		t.Errorf("the last words are %q", words)
	}
}
