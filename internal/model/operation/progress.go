package operation

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Progress is how much is done of something: of 40 files, of 3 GiB.
type Progress struct {
	Done int64  `json:"done"`
	Of   int64  `json:"of"` // 0: not known
	Unit string `json:"unit,omitempty"`
}

// Advance is the progress after another one was reported. It never goes backward: a step that
// is taken again after a crash begins to count anew, and is behind for a while. Another unit
// counts something else, and begins anew.
func (p Progress) Advance(next Progress) Progress {
	next.Unit = Plain(next.Unit, 32)
	next.Of = max(next.Of, 0)
	if next.Unit == p.Unit {
		// What it is measured by may grow. Where it shrinks, what was told stays true.
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

// Reason is a text of anybody, as of a database's error, made one that may be kept and shown.
func Reason(text string) string { return Plain(text, maxReason) }

// Plain is a text in one line, without what would command a terminal, of so many bytes at most.
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
