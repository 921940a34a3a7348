package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/cmd/howdah/screen"
	"howdah/internal/testkit/patience"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden runs one command line for each file. testdata/NAME.txt holds the fixture, the command
// line, and after lines of ---- what came out. `go test -update` writes that last part again.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			runGolden(t, file)
		})
	}
}

func runGolden(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, want, _ := strings.Cut(string(text), "----\n")
	c := readCase(t, head)
	got := c.run(t)
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
	if fixtures[c.fixture] == nil {
		t.Fatalf("no fixture %q", c.fixture)
	}
	return c
}

// fakeTerminal says at which ends a person is.
type fakeTerminal string

func (f fakeTerminal) In() bool  { return strings.Contains(string(f), "in") }
func (f fakeTerminal) Out() bool { return strings.Contains(string(f), "out") }
func (f fakeTerminal) Err() bool { return strings.Contains(string(f), "err") }

// Secret returns what a person types that the terminal does not show.
func (f fakeTerminal) Secret() (string, error) {
	if strings.Contains(string(f), "hangs up") {
		return "", io.EOF
	}
	return "a-password-of-a-user", nil
}

func (f fakeTerminal) Width() int {
	if f.Out() {
		return 100
	}
	return 0
}

// outcome is everything that a command did.
type outcome struct {
	stdout, stderr bytes.Buffer
	executed       []string
	code           int
}

func (c goldenCase) run(t *testing.T) string {
	f := startFake(t, fixtures[c.fixture])
	out := &outcome{}
	o := &options{
		screen: &screen.Screen{
			Stdin: strings.NewReader(strings.ReplaceAll(c.stdin, "HOME", f.home.Dir)), Stdout: &out.stdout, Stderr: &out.stderr, Terminal: fakeTerminal(c.terminal),
			Plain: c.env["NO_COLOR"] != "",
		},
		getenv: func(name string) string { return c.env[name] }, now: func() time.Time { return noon },
		environ: func() []string { return []string{"TERM=xterm"} },
		every:   time.Millisecond, program: "howdah",
		exec: func(path string, args, env []string) error {
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
	out.code = run(ctx, o, append([]string{"--home", f.home.Dir}, split(t, c.expand(f))...))
	text := out.text(f)
	if !strings.HasPrefix(c.line, "env") { // which is for secrets
		secrets = append(secrets, fakeSecret)
	}
	for _, secret := range append(secrets, kept(t, f)...) {
		if strings.Contains(text, secret) {
			t.Errorf("the output holds the secret %q", secret)
		}
	}
	return text
}

// prepare makes the files that command lines name, and returns the secrets in them.
func (c goldenCase) prepare(t *testing.T, f *fake) []string {
	t.Helper()
	const password = "a-password-of-a-user"
	if err := os.WriteFile(filepath.Join(f.home.Dir, "password"), []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.home.Dir, "empty.json"), []byte("\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.home.Dir, "policy.json"), []byte(fakeKeys[1].Policy), 0o644); err != nil {
		t.Fatal(err)
	}
	writeAudit(t, f.home)
	tokens, err := f.home.Join()
	if err != nil {
		t.Fatal(err)
	}
	return []string{password, tokens.AgentToken, tokens.ServerToken}
}

// kept returns the passwords that the command wrote to the home's file. Only its owner may read
// that file.
func kept(t *testing.T, f *fake) []string {
	t.Helper()
	text, err := os.ReadFile(f.home.DemoPassFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	info, statErr := os.Stat(f.home.DemoPassFile())
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
func (c goldenCase) expand(f *fake) string { return strings.ReplaceAll(c.line, "HOME", f.home.Dir) }

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
func (out *outcome) text(f *fake) string {
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
	text := strings.ReplaceAll(b.String(), f.home.Dir, "HOME")
	return strings.ReplaceAll(strings.ReplaceAll(text, f.home.Listen, "LISTEN"), "\x1b", "ESC")
}
