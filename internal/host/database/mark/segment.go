package mark

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"howdah/internal/model/lsn"
)

// SegmentSize is the size of a file of WAL, in bytes.
const SegmentSize = 16 << 20

// Segment is a file of WAL: of a timeline, and by its number, which is the position at which it
// begins divided by SegmentSize.
type Segment struct {
	Timeline int
	Number   uint64
}

var segmentForm = regexp.MustCompile(`^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$`)

// perLog is how many files have one value of the middle part of their names.
const perLog = 1 << 32 / SegmentSize

// ParseSegment reads the name of a file of WAL.
func ParseSegment(name string) (Segment, bool) {
	parts := segmentForm.FindStringSubmatch(name)
	if parts == nil {
		return Segment{}, false
	}
	var number [3]uint64
	for i := range number {
		var err error
		if number[i], err = strconv.ParseUint(parts[i+1], 16, 32); err != nil {
			return Segment{}, false
		}
	}
	if number[2] >= perLog {
		return Segment{}, false
	}
	return Segment{int(number[0]), number[1]*perLog + number[2]}, true
}

// Names reports whether this is the name of a file of WAL, or of a timeline's history.
func Names(name string) bool {
	if _, ok := ParseSegment(name); ok {
		return true
	}
	_, ok := parseHistoryName(name)
	return ok
}

// parseHistoryName returns whose history a file has.
func parseHistoryName(name string) (timeline int, ok bool) {
	digits, ok := strings.CutSuffix(name, ".history")
	if !ok || len(digits) != 8 {
		return 0, false
	}
	file, ok := ParseSegment(digits + "0000000000000000")
	return file.Timeline, ok
}

func (s Segment) String() string {
	return fmt.Sprintf("%08X%08X%08X", s.Timeline, s.Number/perLog, s.Number%perLog)
}

// Begin returns where the file begins.
func (s Segment) Begin() lsn.LSN { return lsn.LSN(s.Number * SegmentSize) }

// lsnAfter returns where the file ends.
func lsnAfter(s Segment) lsn.LSN { return lsn.LSN((s.Number + 1) * SegmentSize) }

// Branch is a part of a database's history: it was on this timeline until a position.
type Branch struct {
	Timeline int
	Until    lsn.LSN // of the newest branch: 0
}

// History is how a database came to its timeline: its branches, the oldest first. The last one is
// the timeline that it is on.
type History []Branch

var errHistory = errors.New("the history of the timeline cannot be read")

// ParseHistory reads the file in which PostgreSQL has the history of a timeline. The first timeline
// has none.
func ParseHistory(timeline int, text string) (History, error) {
	var h History
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("%w: %.80q", errHistory, line)
		}
		number, err := strconv.Atoi(fields[0])
		until, errUntil := lsn.Parse(fields[1])
		if err := errors.Join(err, errUntil); err != nil {
			return nil, fmt.Errorf("%w: %.80q: %w", errHistory, line, err)
		}
		h = append(h, Branch{number, until})
	}
	return append(h, Branch{Timeline: timeline}), nil
}

// Has reports whether a position of a timeline lies on the history.
func (h History) Has(timeline int, at lsn.LSN) bool {
	for _, b := range h {
		if b.Timeline == timeline {
			return b.Until == 0 || at <= b.Until
		}
	}
	return false
}

// File returns the file of WAL with this number that the history goes by. Where a timeline began
// within it, that is the file of the new one: what the old one has behind that place was left.
func (h History) File(number uint64) Segment {
	for n := len(h) - 1; n > 0; n-- {
		if uint64(h[n-1].Until)/SegmentSize <= number {
			return Segment{h[n].Timeline, number}
		}
	}
	return Segment{h[0].Timeline, number}
}

// newest returns the last of these backups that lies on the history; nil: none does. A primary that
// was cut off may have ended one on the branch that it was left on: nothing later is restored from
// that.
func (h History) newest(backups []Backup) *Backup {
	for _, b := range slices.Backward(backups) {
		if h.Has(b.Timeline, b.Stop) {
			return &b
		}
	}
	return nil
}

// left returns whether a file of WAL lies where its timeline was left for the next one, or beyond:
// nobody who follows this history reads it. So does a file of a timeline that is not in the history.
func (h History) left(file Segment) bool {
	for _, b := range h {
		if b.Timeline == file.Timeline {
			return b.Until != 0 && file.Number >= uint64(b.Until)/SegmentSize
		}
	}
	return true
}

// on reports whether the history has a timeline.
func (h History) on(timeline int) bool {
	return slices.ContainsFunc(h, func(b Branch) bool { return b.Timeline == timeline })
}

// Point is a position on a timeline.
type Point struct {
	Timeline int
	LSN      lsn.LSN
}

// needs reports whether one of these files is needed to replay WAL from one point up to another one.
func (h History) needs(files []Segment, from, to Point) (needed bool) {
	h.spans(from, to, func(timeline int, first, end uint64) bool {
		needed = slices.ContainsFunc(files, func(f Segment) bool {
			return f.Timeline == timeline && first <= f.Number && f.Number < end
		})
		return !needed
	})
	return needed
}

// spans calls f for the numbers of the files, from first to before end, that somebody needs of each
// timeline who replays WAL from one point up to another one. It stops if f returns false. The file
// in which a timeline was left is needed of the next timeline, whose first one has its content.
func (h History) spans(from, to Point, f func(timeline int, first, end uint64) bool) {
	first, begun := uint64(from.LSN)/SegmentSize, false
	for _, b := range h {
		if begun = begun || b.Timeline == from.Timeline; !begun {
			continue
		}
		if b.Timeline == to.Timeline {
			f(b.Timeline, first, (uint64(to.LSN)+SegmentSize-1)/SegmentSize)
			return
		}
		end := uint64(b.Until) / SegmentSize
		if !f(b.Timeline, first, end) {
			return
		}
		first = max(first, end)
	}
}
