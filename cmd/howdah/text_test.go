package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"howdah/cmd/howdah/screen"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/identity/home"
)

// odd has words that shells and libpq could take for something else.
var odd = []string{"plain", "", "two words", "it's", `"quoted"`, "$HOME", "`id`", `back\slash`, "a;b", "*", "~", "new\nline"}

func TestShellWordsAreReadBack(t *testing.T) {
	for _, word := range odd {
		for name, quoted := range map[string]string{
			"shellQuote": shellQuote(word), "shellWord": shellWord(word), "shellQuoteDouble": shellQuoteDouble(word),
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
		if got := infoValue(value); got != want {
			t.Errorf("%q: %s, not %s", value, got, want)
		}
	}
}

func TestOnLoopback(t *testing.T) {
	for url, want := range map[string]bool{
		"https://127.31.0.1:7443": true, "https://localhost:1": true, "https://[::1]:1": true,
		"https://10.0.0.1:7443": false, "https://db.example:1": false, "::": false,
	} {
		if onLoopback(url) != want {
			t.Errorf("%s: not %v", url, want)
		}
	}
}

func TestWriteSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := writeSecret(path, "x"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	if err := writeSecret(path, "y"); err == nil {
		t.Error("a file that is there was written over")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "x\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestReadToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(" hj1.x \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := readToken(path); err != nil || token != "hj1.x" {
		t.Errorf("%q, %v", token, err)
	}
	for _, none := range []string{"", path + ".none"} {
		if _, err := readToken(none); err == nil {
			t.Errorf("%q is a token file", none)
		}
	}
}

func TestCheckUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	if _, err := home.Ensure(dir, home.Options{Listen: "127.0.0.1:7443"}); err != nil {
		t.Fatal(err)
	}
	holdElsewhere(t, filepath.Join(dir, "run", "up.lock"), false)
	fresh := filepath.Join(t.TempDir(), "fresh")
	for _, c := range []struct {
		name, dir string
		options   home.Options
		want      string // in the error; "": none
	}{
		{"a new home", fresh, home.Options{Listen: "0.0.0.0:7443", Region: "eu-central-1", Disposable: true}, ""},
		{"GovCloud", fresh, home.Options{Region: "us-gov-west-1"}, ""},
		{"the same again", dir, home.Options{Listen: "127.0.0.1:7443", Region: home.DefaultRegion}, ""},
		{"no port", fresh, home.Options{Listen: "127.0.0.1"}, "--listen"},
		{"port 0", fresh, home.Options{Listen: "127.0.0.1:0"}, "--listen"},
		{"port 70000", fresh, home.Options{Listen: "127.0.0.1:70000"}, "--listen"},
		{"a name", fresh, home.Options{Listen: "here:7443"}, "--listen"},
		{"no region", fresh, home.Options{Region: "Oregon"}, "--region"},
		{"another region", dir, home.Options{Region: "eu-central-1"}, "stays there"},
		{"disposable later", dir, home.Options{Disposable: true}, "without --disposable"},
		{"elsewhere while it is up", dir, home.Options{Listen: "127.0.0.1:7444"}, "is up already"},
	} {
		err := checkUp(c.dir, c.options)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestLimitsOf(t *testing.T) {
	for _, c := range []struct{ text, held, missing string }{
		{"", "", ""},
		{"containment: cgroup2 in /x\ncpu limits: v2\nmemory limits: v1\nio limits: v1\nnote: IOPS limits: of writes\n", "cpu memory io", ""},
		{"cpu limits: v2\nio limits: none (why)\n", "cpu", "io"},
		{"cpu limits: none (a)\nmemory limits: none (b)\nio limits: none (c)\n", "", "cpu, memory, io"},
	} {
		if held, missing := limitsOf(admin.Host{Limits: c.text}); held != c.held || missing != c.missing {
			t.Errorf("%q: %q and %q", c.text, held, missing)
		}
	}
}

func TestLagText(t *testing.T) {
	lag := func(bytes int64, seconds float64) string {
		return lagText(admin.Member{LagBytes: &bytes, LagSeconds: &seconds})
	}
	for _, c := range []struct{ got, want string }{
		{lag(0, 3600), "0 B"}, {lag(10, 0.01), "10 B"}, {lag(2048, 2), "2.0 KiB, 2.0 s"}, {lagText(admin.Member{}), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, not %q", c.got, c.want)
		}
	}
}

func TestPasteable(t *testing.T) {
	usual := &home.Home{Dir: home.DefaultDir()}
	other := &home.Home{Dir: "/srv/my home"}
	for _, c := range []struct {
		at            *home.Home
		command, want string
	}{
		{nil, "howdah status", "./bin/howdah status"},
		{usual, "howdah status", "./bin/howdah status"},
		{other, "howdah status", "./bin/howdah --home '/srv/my home' status"},
		{other, "scripts/install", "scripts/install"},
		{other, "howdah agent --az d", "howdah agent --az d"},
	} {
		o := &options{program: "./bin/howdah", at: c.at}
		if got := o.pasteable(c.command); got != c.want {
			t.Errorf("%s: %s, not %s", c.command, got, c.want)
		}
	}
}

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

func TestFollowEventsTellsEachOnce(t *testing.T) {
	f := startFake(t, fixtures["two"])
	api, err := client.FromHome(f.home)
	if err != nil {
		t.Fatal(err)
	}
	e := eventReader{api: api, from: noon.Add(-2 * time.Hour)}
	first, err := e.read(t.Context())
	if err != nil || len(first) != 2 {
		t.Fatalf("%d events: %v", len(first), err)
	}
	again, err := e.read(t.Context())
	if err != nil || len(again) != 0 {
		t.Errorf("%d events are told again: %v", len(again), err)
	}
}

func TestFollowEventsUntilInterrupted(t *testing.T) {
	f := startFake(t, fixtures["two"])
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: writer, Stderr: io.Discard, Terminal: fakeTerminal("")})
	o.getenv, o.now = func(string) string { return "" }, func() time.Time { return noon }
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, o, []string{"--home", f.home.Dir, "events", "--since", "2h", "-f", "-o", "json"})
		writer.Close()
	}()
	decoder := json.NewDecoder(reader)
	for _, want := range []string{"orders", "shop"} {
		var v eventView
		if err := decoder.Decode(&v); err != nil || v.Source != want {
			t.Errorf("%+v, %v", v, err)
		}
	}
	cancel()
	if err := decoder.Decode(&eventView{}); err != io.EOF {
		t.Errorf("more was written: %v", err)
	}
	if got := <-code; got != 0 {
		t.Errorf("exit %d", got)
	}
}

func TestWatchUntilInterrupted(t *testing.T) {
	f := startFake(t, fixtures["two"])
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: writer, Stderr: io.Discard, Terminal: fakeTerminal("out")})
	o.getenv, o.now = func(string) string { return "" }, func() time.Time { return noon }
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, o, []string{"--home", f.home.Dir, "status", "--watch"})
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

func TestInterruptedWaitSaysThatItGoesOn(t *testing.T) {
	for _, c := range []struct {
		name, want string
		ctx        func() (context.Context, context.CancelFunc)
	}{
		{"Ctrl-C", "no longer waiting for x to be available: it goes on: see howdah status", func() (context.Context, context.CancelFunc) {
			return context.WithCancel(t.Context())
		}},
		{"patience", "waited 15m0s for x to be available: it goes on: see howdah status", func() (context.Context, context.CancelFunc) {
			return context.WithDeadline(t.Context(), time.Now())
		}},
	} {
		ctx, cancel := c.ctx()
		cancel()
		o := &options{now: time.Now, every: time.Hour}
		err := o.poll(ctx, "x to be available", func() (bool, error) { return false, nil })
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestPollWaitsForAnAPIThatIsAway(t *testing.T) {
	now := noon
	o := &options{now: func() time.Time { now = now.Add(time.Second); return now }, every: time.Microsecond}
	looks := 0
	err := o.poll(t.Context(), "x", func() (bool, error) {
		looks++
		if looks < 5 {
			return false, fmt.Errorf("status: %w", client.ErrUnreachable)
		}
		return true, nil
	})
	if err != nil || looks != 5 {
		t.Errorf("%d looks: %v", looks, err)
	}
	err = o.poll(t.Context(), "x", func() (bool, error) { return false, client.ErrUnreachable })
	if !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("after a minute: %v", err)
	}
}
