package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/cli"
	"howdah/internal/cli/clitest"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/home"
)

// silent is a command line that nobody watches.
func silent(words ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Terminal: clitest.Terminal("")})
	o.Getenv, o.Program, o.Every = func(string) string { return "" }, "howdah", time.Millisecond
	code = run(context.Background(), o, words)
	return code, out.String(), errs.String()
}

func TestNobodyAnswers(t *testing.T) {
	h, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{Listen: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, made, want string }{
		{"served", "", "databases go on without it; start its howdah serve again\n"},
		{"up", h.LogFile("up"), "databases go on without it; start it: howdah --home " + h.Dir + " up --detach\n"},
	} {
		if c.made != "" {
			if err := os.WriteFile(c.made, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, words := range [][]string{{"status"}, {"db", "delete", "x", "--yes"}} {
			code, stdout, stderr := silent(append([]string{"--home", h.Dir}, words...)...)
			if code != 1 || stdout != "" || !strings.HasSuffix(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s, %v: exit %d, %q, %q", c.name, words, code, stdout, stderr)
			}
		}
	}
}

func TestInterruptedIsQuiet(t *testing.T) {
	h, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{Listen: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Terminal: clitest.Terminal("")})
	code := run(ctx, o, []string{"--home", h.Dir, "db", "list"})
	if code != cli.CodeInterrupted || errs.Len() > 0 {
		t.Errorf("exit %d, %q", code, errs.String())
	}
}
