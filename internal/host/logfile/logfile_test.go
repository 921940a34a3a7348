package logfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	first  = "postgresql.log.2026-11-22-01"
	second = "postgresql.log.2026-11-22-02"
	third  = "postgresql.log.2026-11-22-03"
)

// newDir returns the directory of a member that has written these files.
func newDir(t *testing.T, files map[string]string) Dir {
	t.Helper()
	d := Dir{Root: t.TempDir(), Sub: "log", Owner: "db-1.m1"}
	must(t, os.Mkdir(filepath.Join(d.Root, d.Sub), 0o700))
	for name, text := range files {
		d.write(t, name, text)
	}
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d Dir) path(name string) string { return filepath.Join(d.Root, d.Sub, name) }

func (d Dir) write(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(d.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}

func (d Dir) read(t *testing.T, name, marker string, lines int) Portion {
	t.Helper()
	p, err := d.Read(name, marker, lines)
	must(t, err)
	return p
}

func (d Dir) names(t *testing.T) []string {
	t.Helper()
	files, err := d.List()
	must(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

func TestListKnowsPlainFilesOfOurNamesOnly(t *testing.T) {
	d := newDir(t, map[string]string{second: "two\n", first: "one and more\n", "patroni.log": "no\n", "postgresql.log": "no\n", first + ".gz": "no\n"})
	must(t, os.Symlink("patroni.log", d.path(third)))
	must(t, os.Mkdir(d.path("postgresql.log.2026-11-22-04"), 0o700))
	must(t, syscall.Mkfifo(d.path("postgresql.log.2026-11-22-05"), 0o600))
	at := time.Date(2026, 11, 22, 1, 59, 0, 0, time.UTC)
	must(t, os.Chtimes(d.path(first), at, at))
	files, err := d.List()
	must(t, err)
	if len(files) != 2 || !cmp.Equal(files[0], File{first, 13, at}) || files[1].Name != second || files[1].Size != 4 {
		t.Errorf("listed %+v", files)
	}
	if files, err := (Dir{Root: filepath.Join(d.Root, "nowhere"), Sub: "log"}).List(); err != nil || len(files) != 0 {
		t.Errorf("of a member that is not here: %v, %v", files, err)
	}
}

// Nothing outside of the directory can be read, deleted or shortened, whoever asks, and whatever
// PostgreSQL's user puts there.
func TestNothingElseIsReached(t *testing.T) {
	d := newDir(t, map[string]string{first: "one\n", "patroni.log": "secret\n"})
	outside := filepath.Join(t.TempDir(), second)
	must(t, os.WriteFile(outside, []byte("secret\n"), 0o600))
	must(t, os.Symlink(outside, d.path(second)))
	must(t, os.Symlink("patroni.log", d.path(third)))
	must(t, syscall.Mkfifo(d.path("postgresql.log.2026-11-22-05"), 0o600))
	for _, name := range []string{
		"", ".", "..", "../log/" + first, "/" + first, first + "\x00", "patroni.log", first + "/..", "./" + first, first + "\n",
		second, third, "postgresql.log.2026-11-22-05", "postgresql.log.2026-11-22-06",
	} {
		if p, err := d.Read(name, Beginning, 0); !errors.Is(err, ErrNoFile) {
			t.Errorf("%q: read %q, %v", name, p.Text, err)
		}
	}
	must(t, d.Trim(time.Now().Add(time.Hour), 0))
	if text, err := os.ReadFile(outside); err != nil || string(text) != "secret\n" {
		t.Errorf("outside is %q now: %v", text, err)
	}
	must(t, os.Rename(filepath.Join(d.Root, "log"), filepath.Join(d.Root, "was")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(d.Root, "log")))
	if p, err := d.Read(second, Beginning, 0); err == nil {
		t.Errorf("through a directory that leads away: %q", p.Text)
	}
	if _, err := d.List(); err == nil {
		t.Error("a directory that leads away was listed")
	}
	if err := d.Trim(time.Now().Add(time.Hour), 0); err == nil {
		t.Error("a directory that leads away was trimmed")
	}
}

func TestTheEndAndTheBeginning(t *testing.T) {
	d := newDir(t, map[string]string{first: "a\nb\nc\nd\n", second: "a\nb\nhalf", third: ""})
	for _, c := range []struct {
		file, marker string
		lines        int
		want         string
		more         bool
	}{
		{first, "", 0, "a\nb\nc\nd\n", false},
		{first, "", 2, "c\nd\n", false},
		{first, "", 9, "a\nb\nc\nd\n", false},
		{first, Beginning, 3, "a\nb\nc\n", true},
		{first, Beginning, 4, "a\nb\nc\nd\n", false},
		{first, Beginning, 0, "a\nb\nc\nd\n", false},
		{second, "", 1, "half", false},
		{second, Beginning, 2, "a\nb\n", true},
		{second, Beginning, 3, "a\nb\nhalf", false},
		{third, "", 0, "", false},
		{third, Beginning, 1, "", false},
	} {
		p := d.read(t, c.file, c.marker, c.lines)
		if string(p.Text) != c.want || p.More != c.more {
			t.Errorf("%s from %q, %d lines: %q, more %v", c.file, c.marker, c.lines, p.Text, p.More)
		}
	}
}

// A reader that goes on with the marker of each portion reads each byte once, while the file grows.
func TestPortionsOfAFileThatGrows(t *testing.T) {
	d := newDir(t, map[string]string{first: "1\n2\n3\n"})
	want, got, marker := "1\n2\n3\n", "", Beginning
	for n := range 20 {
		p := d.read(t, first, marker, 2)
		got += string(p.Text)
		marker = p.Next
		if n < 10 {
			line := strings.Repeat("x", n) + "\nha"
			d.write(t, first, line)
			want += line
		}
	}
	if got != want {
		t.Errorf("read %q, written %q", got, want)
	}
	p := d.read(t, first, marker, 0)
	if len(p.Text) > 0 || p.More || p.Next != marker {
		t.Errorf("at the end: %+v", p)
	}
	tail := d.read(t, first, "", 1)
	if tail.Next != marker {
		t.Errorf("the marker of the end is %s, that of all %s", tail.Next, marker)
	}
}

func TestPortionsAreBounded(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	d := newDir(t, map[string]string{
		first:  strings.Repeat(line, 25000),
		second: strings.Repeat("é", MaxBytes),
		third:  strings.Repeat("\n", 3*MaxLines),
	})
	p := d.read(t, first, Beginning, 20000)
	if !p.More || len(p.Text) > MaxBytes || len(p.Text) < MaxBytes-100 || len(p.Text)%100 != 0 {
		t.Errorf("%d bytes of lines of 100", len(p.Text))
	}
	if p := d.read(t, first, "", 20000); p.More || len(p.Text) > MaxBytes || len(p.Text)%100 != 0 {
		t.Errorf("%d bytes of the end, of lines of 100", len(p.Text))
	}
	if p := d.read(t, third, Beginning, 0); !p.More || len(p.Text) != MaxLines {
		t.Errorf("%d lines where none are asked for", len(p.Text))
	}
	if p := d.read(t, third, "", 0); len(p.Text) != MaxLines {
		t.Errorf("%d lines of the end where none are asked for", len(p.Text))
	}
	var all []byte
	for marker, more := Beginning, true; more; {
		p := d.read(t, second, marker, 0)
		if !strings.HasPrefix(string(p.Text), "é") || !strings.HasSuffix(string(p.Text), "é") {
			t.Fatalf("a character was cut in two: %d bytes", len(p.Text))
		}
		all, marker, more = append(all, p.Text...), p.Next, p.More
	}
	if len(all) != 2*MaxBytes {
		t.Errorf("read %d bytes of one line", len(all))
	}
}

func TestMarkersOfOthers(t *testing.T) {
	d := newDir(t, map[string]string{first: "1\n2\n", second: "1\n2\n"})
	marker := d.read(t, first, Beginning, 1).Next
	other := d
	other.Owner = "db-1.m2"
	for name, read := range map[string]func() error{
		"another file":   func() error { _, err := d.Read(second, marker, 0); return err },
		"another member": func() error { _, err := other.Read(first, marker, 0); return err },
		"behind the end": func() error { _, err := d.Read(first, strings.TrimSuffix(marker, ":2")+":5", 0); return err },
		"no number":      func() error { _, err := d.Read(first, "x", 0); return err },
		"below nothing":  func() error { _, err := d.Read(first, strings.TrimSuffix(marker, ":2")+":-1", 0); return err },
		"a plain number": func() error { _, err := d.Read(first, "2", 0); return err },
	} {
		if err := read(); !errors.Is(err, ErrMarker) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A copy in the place of a file is another file.
	must(t, os.Rename(d.path(first), d.path("kept")))
	d.write(t, first, "1\n2\n")
	if _, err := d.Read(first, marker, 0); !errors.Is(err, ErrMarker) {
		t.Errorf("a file that was exchanged: %v", err)
	}
}

func TestTrimByAge(t *testing.T) {
	d := newDir(t, map[string]string{first: "1\n", second: "2\n", third: "3\n", "patroni.log": "4\n"})
	old := time.Now().Add(-3 * time.Hour)
	for _, name := range []string{first, third, "patroni.log"} {
		must(t, os.Chtimes(d.path(name), old, old))
	}
	must(t, d.Trim(time.Now().Add(-2*time.Hour), 1<<30))
	// PostgreSQL writes to the newest file by name.
	if got := d.names(t); !slices.Equal(got, []string{second, third}) {
		t.Errorf("left are %v", got)
	}
	if _, err := os.Stat(d.path("patroni.log")); err != nil {
		t.Errorf("a file that is none of ours: %v", err)
	}
}

func TestTrimBySize(t *testing.T) {
	megabyte := strings.Repeat(strings.Repeat("x", 63)+"\n", 16384)
	d := newDir(t, map[string]string{first: megabyte, second: megabyte, third: megabyte})
	must(t, d.Trim(time.Now().Add(-time.Hour), 5<<19))
	if got := d.names(t); !slices.Equal(got, []string{second, third}) {
		t.Errorf("left are %v", got)
	}
}

// The file that PostgreSQL writes to loses its beginning. Markers still lead on, and say what is
// gone.
func TestTheNewestIsShortened(t *testing.T) {
	line := strings.Repeat("x", 62) + "\n" // lines do not end where blocks do
	d := newDir(t, map[string]string{third: strings.Repeat(line, 40000)})
	start := d.read(t, third, Beginning, 100)
	end := d.read(t, third, "", 1)
	must(t, d.Trim(time.Now().Add(-time.Hour), 1<<20))
	info, err := os.Stat(d.path(third))
	must(t, err)
	if info.Size() != 40000*63 || used(info) > 3<<18 {
		t.Fatalf("%d bytes long, %d on disk", info.Size(), used(info))
	}
	d.write(t, third, "new\n")
	if p := d.read(t, third, end.Next, 0); string(p.Text) != "new\n" {
		t.Errorf("after the marker of the end comes %q", p.Text)
	}
	for name, marker := range map[string]string{"the beginning": Beginning, "a place that is gone": start.Next} {
		p := d.read(t, third, marker, 0)
		note, rest, _ := strings.Cut(string(p.Text), "\n")
		if !strings.HasPrefix(note, "[howdah: ") || !strings.HasPrefix(rest, line) || !strings.HasSuffix(rest, line+"new\n") || p.More {
			t.Errorf("from %s: %q … %q", name, note, rest[:min(len(rest), 80)])
		}
	}
	if p := d.read(t, third, "", 0); !strings.HasPrefix(string(p.Text), line) {
		t.Errorf("the end begins with %q", p.Text[:80])
	}
}
