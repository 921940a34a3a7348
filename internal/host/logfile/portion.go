package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// MaxBytes bounds one portion, not counting a note about what is gone.
	MaxBytes = 1 << 20
	// MaxLines bounds one portion if nobody says how many lines.
	MaxLines = 10000
	// Beginning is the marker of a file's first byte.
	Beginning = "0"
)

// ErrMarker says that a marker does not belong to the file.
var ErrMarker = errors.New("the marker does not belong to this file")

// Portion is a part of a file.
type Portion struct {
	Text []byte `json:"text"`
	// Next is where the next portion begins, also at the end of a file, as the file may grow.
	Next string `json:"next"`
	// More says that there was more of it at that moment.
	More bool `json:"more"`
}

// Read reads the last lines of a file if marker is "", or else the lines from the marker on. It
// reads at most this many lines, or MaxLines if lines is 0, and at most MaxBytes. A portion ends
// with a whole line, unless a line is longer than a portion or not complete yet.
func (d Dir) Read(name, marker string, lines int) (Portion, error) {
	root, err := os.OpenRoot(d.Root)
	if errors.Is(err, os.ErrNotExist) {
		return Portion{}, ErrNoFile
	}
	if err != nil {
		return Portion{}, fmt.Errorf("look for logs: %w", err)
	}
	defer func() { _ = root.Close() }()
	file, info, err := d.open(root, name, os.O_RDONLY)
	if err != nil {
		return Portion{}, err
	}
	defer file.Close()
	if lines <= 0 {
		lines = MaxLines
	}
	r := reader{file: file, identity: d.identity(info), size: info.Size(), kept: firstKept(file)}
	if marker == "" {
		return r.end(lines)
	}
	from, err := r.offset(marker)
	if err != nil {
		return Portion{}, err
	}
	return r.from(from, lines)
}

// reader reads portions of one open file.
type reader struct {
	file     *os.File
	identity string
	size     int64 // when it was opened
	kept     int64 // where the hole at its beginning ends
}

// firstKept returns the offset of the first byte that is not in a hole.
func firstKept(file *os.File) int64 {
	offset, err := unix.Seek(int(file.Fd()), 0, unix.SEEK_DATA)
	if err != nil {
		return 0 // an empty file, or a file system without holes
	}
	return offset
}

// offset returns where a marker points.
func (r reader) offset(marker string) (int64, error) {
	if marker == Beginning {
		return 0, nil
	}
	identity, text, _ := strings.Cut(marker, ":")
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 || identity != r.identity || offset > r.size {
		return 0, ErrMarker
	}
	return offset, nil
}

func (r reader) marker(offset int64) string { return fmt.Sprintf("%s:%d", r.identity, offset) }

// end reads the last lines.
func (r reader) end(lines int) (Portion, error) {
	from := max(r.size-MaxBytes, r.kept)
	text, err := r.read(from)
	if err != nil {
		return Portion{}, err
	}
	next := from + int64(len(text))
	if from > 0 {
		text = text[afterLine(text):]
	}
	text = text[startOfLast(text, lines):]
	whole := wholeRunes(text)
	return Portion{Text: whole, Next: r.marker(next - int64(len(text)-len(whole)))}, nil
}

// from reads lines from an offset on. It says if some of them were given up meanwhile.
func (r reader) from(offset int64, lines int) (Portion, error) {
	start, note := offset, []byte(nil)
	if offset < r.kept {
		text, err := r.read(r.kept)
		if err != nil {
			return Portion{}, err
		}
		start = r.kept + int64(afterLine(text))
		note = fmt.Appendf(nil, "[howdah: %d bytes of this file were deleted, so that logs do not fill the disk]\n", start-offset)
	}
	text, err := r.read(start)
	if err != nil {
		return Portion{}, err
	}
	whole := text[:endOfFirst(text, lines)]
	if start+int64(len(whole)) < r.size && len(whole) == MaxBytes {
		// The last line of a full portion belongs to the next one.
		if n := bytes.LastIndexByte(whole, '\n'); n >= 0 {
			whole = whole[:n+1]
		}
	}
	whole = wholeRunes(whole)
	next := start + int64(len(whole))
	return Portion{Text: append(note, whole...), Next: r.marker(next), More: next < r.size && len(whole) > 0}, nil
}

// read reads up to MaxBytes of what was there when the file was opened.
func (r reader) read(offset int64) ([]byte, error) {
	text := make([]byte, max(min(MaxBytes, r.size-offset), 0))
	n, err := r.file.ReadAt(text, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return text[:n], nil
}

// afterLine returns where the second line of a text begins, if there is one.
func afterLine(text []byte) int {
	if n := bytes.IndexByte(text, '\n'); n >= 0 && n+1 < len(text) {
		return n + 1
	}
	return 0
}

// endOfFirst returns the length of the first lines of a text.
func endOfFirst(text []byte, lines int) int {
	at := 0
	for ; lines > 0; lines-- {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return len(text)
		}
		at += n + 1
	}
	return at
}

// startOfLast returns where the last lines of a text begin.
func startOfLast(text []byte, lines int) int {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for ; lines > 0; lines-- {
		n := bytes.LastIndexByte(text[:at], '\n')
		if n < 0 {
			return 0
		}
		at = n
	}
	return at + 1
}

// wholeRunes returns the text without a last character that is not complete. The next portion has
// it.
func wholeRunes(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		b := text[len(text)-n]
		if !utf8.RuneStart(b) {
			continue
		}
		if b >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
			return text[:len(text)-n]
		}
		break
	}
	return text
}
