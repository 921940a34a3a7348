// Package heard bounds what is kept of what a server says. A server may be broken, or somebody's who means
// ill: what it says must not fill our memory, nor a report.
package heard

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// MostText is how long a text may be that is kept, in bytes.
const MostText = 1000

// more is at the end of a text that was cut.
const more = "…"

// Text is a text in one line, with no letters that a terminal acts on. It is cut if it is too long.
func Text(text string) string {
	cut := len(text) > MostText
	if cut {
		text = text[:MostText-len(more)]
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if cut {
		text += more
	}
	return text
}

// MostStates is how many SQLSTATEs are told apart.
const MostStates = 50

// Other stands for SQLSTATEs that are none, and for those that are too many.
const Other = "other"

// State returns the SQLSTATE of an error, or none where no server answered.
func State(err error, none string) string {
	var told *pgconn.PgError
	if !errors.As(err, &told) {
		return none
	}
	const digits, letters = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if len(told.Code) != 5 || strings.Trim(told.Code, digits+letters) != "" {
		return Other
	}
	return told.Code
}

// Among is the state under which something is counted beside those that are known.
func Among[V any](known map[string]V, state string) string {
	if _, is := known[state]; is || len(known) < MostStates {
		return state
	}
	return Other
}

// mostLine is how much of a line is read, in bytes.
const mostLine = 64 << 10

// Lines calls do for each line, until all is read. What is too long of a line is left out.
func Lines(from io.Reader, do func(line string)) {
	lines := bufio.NewReaderSize(from, mostLine)
	for begin := true; ; {
		line, broken, err := lines.ReadLine()
		if err != nil {
			return
		}
		if begin {
			do(string(line))
		}
		begin = !broken
	}
}

// Most keeps the first bytes that are written to it, and takes all.
type Most struct {
	Bytes int
	kept  strings.Builder
}

// Write keeps what has room. It never fails.
func (m *Most) Write(p []byte) (int, error) {
	m.kept.Write(p[:min(len(p), max(0, m.Bytes-m.kept.Len()))])
	return len(p), nil
}

func (m *Most) String() string { return m.kept.String() }

// Last keeps the last bytes that are written to it.
type Last struct {
	Bytes int
	kept  []byte
}

// Write keeps the end. It never fails.
func (l *Last) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[max(0, len(p)-l.Bytes):]...)
	l.kept = l.kept[max(0, len(l.kept)-l.Bytes):]
	return len(p), nil
}

func (l *Last) String() string { return string(l.kept) }
