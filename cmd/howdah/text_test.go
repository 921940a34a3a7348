package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/cli/clitest"
	"howdah/internal/cli/screen"
)

// TestReferenceIsCurrent checks that docs/cli.md is what gen-docs writes.
func TestReferenceIsCurrent(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != reference(newRoot(newOptions(screen.Std()))) {
		t.Error("docs/cli.md is not current: go run ./cmd/howdah gen-docs docs/cli.md")
	}
}

func TestGenDocs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cli.md")
	if code, _, stderr := silent("gen-docs", file); code != 0 {
		t.Fatal(stderr)
	}
	_, printed, _ := silent("gen-docs")
	if text, err := os.ReadFile(file); err != nil || string(text) != printed || printed == "" {
		t.Errorf("the file and what is printed differ: %v", err)
	}
	if code, _, _ := silent("gen-docs", filepath.Join(file, "x")); code != 1 {
		t.Errorf("exit %d for a file that cannot be", code)
	}
}

// TestEveryCommandExplainsItself checks that each command has a line of its own, and that each
// command which does something has an example of its own.
func TestEveryCommandExplainsItself(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := c.CommandPath()
		if c.Name() == "help" || strings.Contains(path, "completion") || c.Hidden {
			return
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the line %q", path, c.Short)
		}
		if !c.HasSubCommands() && !strings.Contains(c.Example, path) {
			t.Errorf("%s has no example", path)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(newOptions(screen.Std())))
}

func TestFollowEventsUntilInterrupted(t *testing.T) {
	f := clitest.Start(t, clitest.Fixtures["two"])
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: writer, Stderr: io.Discard, Terminal: clitest.Terminal("")})
	o.Getenv, o.Now = func(string) string { return "" }, func() time.Time { return clitest.Noon }
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, o, []string{"--home", f.Home.Dir, "events", "--since", "2h", "-f", "-o", "json"})
		writer.Close()
	}()
	decoder := json.NewDecoder(reader)
	for _, want := range []string{"orders", "shop"} {
		var v struct{ Source string }
		if err := decoder.Decode(&v); err != nil || v.Source != want {
			t.Errorf("%+v, %v", v, err)
		}
	}
	cancel()
	if err := decoder.Decode(&struct{}{}); err != io.EOF {
		t.Errorf("more was written: %v", err)
	}
	if got := <-code; got != 0 {
		t.Errorf("exit %d", got)
	}
}

func TestWatchUntilInterrupted(t *testing.T) {
	f := clitest.Start(t, clitest.Fixtures["two"])
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: writer, Stderr: io.Discard, Terminal: clitest.Terminal("out")})
	o.Getenv, o.Now = func(string) string { return "" }, func() time.Time { return clitest.Noon }
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, o, []string{"--home", f.Home.Dir, "status", "--watch"})
		writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	for lines.Scan() && !strings.Contains(lines.Text(), "all is well") {
		continue
	}
	cancel()
	for lines.Scan() {
		continue
	}
	if got := <-code; got != 0 {
		t.Errorf("exit %d", got)
	}
}
