package backups

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/repository"
)

// What the command prints is what the agents encrypt with, also if a person typed the key.
func TestThePassphraseOfADatabase(t *testing.T) {
	key := repository.Exported{Name: "main", ID: "repo-1", Key: bytes.Repeat([]byte{7}, repository.Size)}
	file := filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(file, []byte(strings.ToLower(key.Text())), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runKey(t, "db-1", "--key-file", file)
	if err != nil || out != repository.Passphrase(key.Key, "db-1")+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(key.Text(), "-", "Z", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"db-1"}, {"db-1", "--key-file", file}, {"db-1", "--key-file", "/nowhere"}} {
		if out, err := runKey(t, words...); err == nil || out != "" {
			t.Errorf("%q printed %q", words, out)
		}
	}
}

// runKey runs the command, and returns what it printed.
func runKey(t *testing.T, words ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	o := cli.NewOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard}, "test")
	cmd := newKeyPassphrase(o)
	cmd.SetArgs(words)
	cmd.SetErr(io.Discard)
	cmd.SilenceUsage = true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}
