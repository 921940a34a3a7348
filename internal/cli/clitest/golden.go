package clitest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/testkit/patience"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Commands makes the commands that a test is about.
type Commands func(*cli.Options) []*cobra.Command

// Golden runs one command line for each file. testdata/NAME.txt holds the fixture, the command
// line, and after lines of ---- what came out. `go test -update` writes that last part again.
func Golden(t *testing.T, commands Commands) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			runGolden(t, commands, file)
		})
	}
}

func runGolden(t *testing.T, commands Commands, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, want, _ := strings.Cut(string(text), "----\n")
	c := readCase(t, head)
	got := c.run(t, commands)
	if *update {
		if err := os.WriteFile(file, []byte(head+"----\n"+got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n(-want +got):\n%s", c.line, diff)
	}
}

// goldenCase is the head of a golden file.
type goldenCase struct {
	fixture, line, stdin, terminal string
	env                            map[string]string
}

func readCase(t *testing.T, head string) goldenCase {
	t.Helper()
	c := goldenCase{fixture: "empty", env: map[string]string{}}
	for _, line := range strings.Split(strings.TrimSpace(head), "\n") {
		key, text, _ := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, "$ howdah"):
			c.line = strings.TrimSpace(strings.TrimPrefix(line, "$ howdah"))
		case key == "fixture":
			c.fixture = text
		case key == "stdin":
			c.stdin = strings.ReplaceAll(text, `\n`, "\n")
		case key == "terminal":
			c.terminal = text
		case key == "env":
			name, value, _ := strings.Cut(text, "=")
			c.env[name] = value
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	if Fixtures[c.fixture] == nil {
		t.Fatalf("no fixture %q", c.fixture)
	}
	return c
}

// outcome is everything that a command did.
type outcome struct {
	stdout, stderr bytes.Buffer
	executed       []string
	code           int
}

func (c goldenCase) run(t *testing.T, commands Commands) string {
	t.Helper()
	f := Start(t, Fixtures[c.fixture])
	out := &outcome{}
	o := &cli.Options{
		Screen: &screen.Screen{
			Stdin: strings.NewReader(strings.ReplaceAll(c.stdin, "HOME", f.Home.Dir)), Stdout: &out.stdout, Stderr: &out.stderr, Terminal: Terminal(c.terminal),
			Plain: c.env["NO_COLOR"] != "",
		},
		Getenv: func(name string) string { return c.env[name] }, Now: func() time.Time { return Noon },
		Environ: func() []string { return []string{"TERM=xterm"} },
		Every:   time.Millisecond, Program: "howdah", Version: "dev",
		Exec: func(path string, args, env []string) error {
			out.executed = append(out.executed, strings.Join(args, " "))
			for _, v := range env {
				if strings.HasPrefix(v, "PG") {
					out.executed = append(out.executed, v)
				}
			}
			return nil
		},
	}
	secrets := c.prepare(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(10*time.Second))
	defer cancel()
	out.code = cli.Run(ctx, o, cli.Root(o, commands(o)...), append([]string{"--home", f.Home.Dir}, split(t, c.expand(f))...))
	text := out.text(f)
	if !strings.HasPrefix(c.line, "env") { // which is for secrets
		secrets = append(secrets, Secret)
	}
	for _, secret := range append(secrets, kept(t, f)...) {
		if strings.Contains(text, secret) {
			t.Errorf("the output holds the secret %q", secret)
		}
	}
	return text
}

// prepare makes the files that command lines name, and returns the secrets in them.
func (c goldenCase) prepare(t *testing.T, f *Fake) []string {
	t.Helper()
	const password = "a-password-of-a-user"
	if err := os.WriteFile(filepath.Join(f.Home.Dir, "password"), []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Home.Dir, "empty.json"), []byte("\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Home.Dir, "policy.json"), []byte(Keys[1].Policy), 0o644); err != nil {
		t.Fatal(err)
	}
	WriteAudit(t, f.Home)
	tokens, err := f.Home.Join()
	if err != nil {
		t.Fatal(err)
	}
	return []string{password, tokens.AgentToken, tokens.ServerToken}
}

// kept returns the passwords that the command wrote to the home's file. Only its owner may read
// that file.
func kept(t *testing.T, f *Fake) []string {
	t.Helper()
	text, err := os.ReadFile(f.Home.DemoPassFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	info, statErr := os.Stat(f.Home.DemoPassFile())
	if err := errors.Join(err, statErr); err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the password file has mode %o", info.Mode().Perm())
	}
	var passwords []string
	for _, line := range strings.Fields(string(text)) {
		if fields := strings.Split(line, ":"); len(fields) == 5 {
			passwords = append(passwords, fields[4])
		}
	}
	return passwords
}

// expand returns the command line with the home's directory in place of HOME.
func (c goldenCase) expand(f *Fake) string { return strings.ReplaceAll(c.line, "HOME", f.Home.Dir) }

// split reads words and 'quoted words'.
func split(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		if m[2] != "" {
			words = append(words, m[2])
		} else {
			words = append(words, m[1])
		}
	}
	return words
}

// text returns the outcome in the form of golden files.
func (out *outcome) text(f *Fake) string {
	var b strings.Builder
	b.WriteString(out.stdout.String())
	if out.stderr.Len() > 0 {
		fmt.Fprintf(&b, "---- stderr\n%s", out.stderr.String())
	}
	if len(out.executed) > 0 {
		fmt.Fprintf(&b, "---- executed\n%s\n", strings.Join(out.executed, "\n"))
	}
	if len(f.calls) > 0 {
		fmt.Fprintf(&b, "---- calls\n%s\n", strings.Join(f.calls, "\n"))
	}
	if out.code != 0 {
		fmt.Fprintf(&b, "---- exit %d\n", out.code)
	}
	text := strings.ReplaceAll(b.String(), f.Home.Dir, "HOME")
	return strings.ReplaceAll(strings.ReplaceAll(text, f.Home.Listen, "LISTEN"), "\x1b", "ESC")
}
