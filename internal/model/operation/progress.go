package operation

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parts begins the unit of a progress that is known as a share alone: the numbers mean nothing else.
const Parts = "parts"

// Progress is how much is done, such as 3 of 40 files.
type Progress struct {
	Done int64  `json:"done"`
	Of   int64  `json:"of"` // 0: not known
	Unit string `json:"unit,omitempty"`
}

// Advance returns the progress after next was reported. It never goes backward in one unit: a step
// that is taken again after a crash counts from 0, and so reports less for a while. A new unit
// counts something else, and starts afresh.
func (p Progress) Advance(next Progress) Progress {
	next.Unit = Plain(next.Unit, 32)
	next.Of = max(next.Of, 0)
	if next.Unit == p.Unit {
		// The total may grow. If it shrinks, the total that was told before stays.
		next.Of = max(next.Of, p.Of)
		next.Done = max(next.Done, p.Done)
	}
	next.Done = max(next.Done, 0)
	if next.Of > 0 {
		next.Done = min(next.Done, next.Of)
	}
	return next
}

// maxReason is how many bytes of a reason are kept.
const maxReason = 500

// Reason makes any text, such as a database's error, fit to be kept and shown.
func Reason(text string) string { return Plain(text, maxReason) }

// Plain returns a text as one line of at most most bytes, without characters that control a
// terminal.
func Plain(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	text = text[:most]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}
