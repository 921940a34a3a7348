package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/testkit"
)

// writer has a descriptor of its own for a log, as a process has its standard error.
type writer struct {
	*testing.T
	output
	fd int
}

func newWriter(t *testing.T, size int64) *writer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part.log")
	file, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &writer{T: t, output: output{path: path, descriptors: []int{fd}, size: size}, fd: fd}
}

func (w *writer) write(text string) {
	w.Helper()
	if _, err := unix.Write(w.fd, []byte(text)); err != nil {
		w.Fatal(err)
	}
}

func (w *writer) kept() {
	w.Helper()
	if err := w.keep(); err != nil {
		w.Fatal(err)
	}
}

// has compares the log and the old logs, the youngest first.
func (w *writer) has(want ...string) {
	w.Helper()
	for n := range oldLogs + 2 {
		text, err := os.ReadFile(Aside(w.path, n))
		if err != nil {
			text = []byte("none")
		}
		expected := "none"
		if n < len(want) {
			expected = want[n]
		}
		if string(text) != expected {
			w.Errorf("%s: %q, want %q", Aside("log", n), text, expected)
		}
	}
}

func TestALogStaysWithinBounds(t *testing.T) {
	w := newWriter(t, 10)
	w.write("short")
	w.kept()
	w.has("short")
	w.write("and long")
	w.kept()
	w.has("", "shortand long")
	for n := range oldLogs {
		w.write(fmt.Sprintf("ten and more %d", n))
		w.kept()
	}
	w.has("", "ten and more 3", "ten and more 2", "ten and more 1", "ten and more 0")
	info, err := os.Stat(w.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the new log: %v, %v", info.Mode(), err)
	}
}

func TestALogIsKeptAfterAnInterruption(t *testing.T) {
	w := newWriter(t, 10)
	w.write("before")
	// The process was killed between the two steps, or somebody else's program moved the file.
	if err := os.Rename(w.path, Aside(w.path, 1)); err != nil {
		t.Fatal(err)
	}
	w.write(", between")
	w.kept()
	w.write("after")
	w.has("after", "before, between")
	// If somebody else's file is in its place, that is appended to.
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path, []byte("new:"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.kept()
	w.write("on")
	w.has("new:on", "before, between")
}

func TestALogThatCannotBeMadeIsTriedAgain(t *testing.T) {
	w := newWriter(t, 10)
	w.write("more than ten")
	dir := filepath.Dir(w.path)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := w.keep(); err == nil {
		t.Error("no error although its directory is gone")
	}
	w.write(", not lost")
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	w.kept()
	w.has("", "more than ten, not lost")
}

func TestAPartIsToldOfItsLog(t *testing.T) {
	s := supervise(t, [2]string{"one", `echo "$` + LogVariable + `" >told; sleep 60`})
	testkit.Eventually(t, 10*time.Second, s.has("told", 1))
	if got, want := strings.Join(s.words("told"), " "), filepath.Join(s.dir, "one.log"); got != want {
		t.Errorf("its log is %q, want %q", got, want)
	}
}

func TestOwnLogIsTakenOnce(t *testing.T) {
	t.Setenv(LogVariable, "/x")
	if got := OwnLog(); got != "/x" {
		t.Errorf("%q", got)
	}
	if got := OwnLog(); got != "" {
		t.Errorf("what we start would take %q for its own", got)
	}
}

const talker = "HOWDAH_TEST_TALKER"

// TestTalker is the process that TestNoLineIsLost starts. It writes and writes while its log is put
// aside again and again.
func TestTalker(t *testing.T) {
	path := os.Getenv(talker)
	if path == "" {
		return
	}
	log := slog.New(slog.DiscardHandler)
	go output{path: path, descriptors: []int{unix.Stdout, unix.Stderr}, size: 1 << 16}.look(t.Context(), time.Millisecond, log)
	for n := 0; ; n++ {
		if _, err := fmt.Fprintf(os.Stderr, "line %d\n", n); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(Aside(path, oldLogs-1)); err == nil {
			return
		}
	}
}

func TestNoLineIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talker.log")
	file, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTalker$")
	cmd.Env = append(os.Environ(), talker+"="+path)
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for n := oldLogs; n >= 0; n-- {
		text, err := os.ReadFile(Aside(path, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "line ") {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) < 1000 {
		t.Fatalf("only %d lines", len(lines))
	}
	for n, line := range lines {
		if want := fmt.Sprintf("line %d\n", n); line != want {
			t.Fatalf("%q, want %q", line, want)
		}
	}
}
