package heard

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"two\n\tlines":                "two lines",
		"\x1b[31mred\x07":             "[31mred",
		"a\xffb":                      "a b",
		"日本語です":                       "日本語です",
		strings.Repeat("x", MostText): strings.Repeat("x", MostText),
	} {
		if got := Text(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, long := range []string{strings.Repeat("x", 1<<20), strings.Repeat("日", 1<<20)} {
		if got := Text(long); len(got) > MostText || !strings.HasSuffix(got, more) || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	known := map[string]int{}
	for n := range 1000 {
		known[Among(known, State(&pgconn.PgError{Code: fmt.Sprintf("%05d", n)}, ""))]++
	}
	if len(known) != MostStates+1 || known[Other] != 1000-MostStates || known["00007"] != 1 {
		t.Errorf("%d of them, %d others", len(known), known[Other])
	}
	for code, want := range map[string]string{"40P01": "40P01", "": Other, "4000": Other, "../..": Other, "40p01": Other, strings.Repeat("4", 1000): Other} {
		if got := State(fmt.Errorf("x: %w", &pgconn.PgError{Code: code}), "none"); got != want {
			t.Errorf("%.10q became %q", code, got)
		}
	}
	if got := State(errors.New("x"), "none"); got != "none" {
		t.Errorf("it became %q", got)
	}
}

// A line without an end is read to its end, so that who writes it need not wait.
func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*mostLine+5)
	from := strings.NewReader("one\r\n\n" + long + "\ntwo\n" + long)
	var all []string
	Lines(from, func(line string) { all = append(all, line) })
	if rest, err := io.ReadAll(from); err != nil || len(rest) > 0 {
		t.Errorf("%d bytes are left, %v", len(rest), err)
	}
	if want := []string{"one", "", long[:mostLine], "two", long[:mostLine]}; !slices.Equal(all, want) {
		t.Errorf("%d lines: %.20q", len(all), all)
	}
}

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	most, last := &Most{Bytes: 5}, &Last{Bytes: 5}
	for _, text := range []string{"abc", "defg", "", "hijklmnopq"} {
		for _, w := range []io.Writer{most, last} {
			if n, err := io.WriteString(w, text); n != len(text) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
	}
	if most.String() != "abcde" || last.String() != "mnopq" {
		t.Errorf("%q, %q", most, last)
	}
}
