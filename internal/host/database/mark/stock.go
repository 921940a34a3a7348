package mark

import (
	"slices"
	"sync"
)

// Stock is which files of WAL a repository has. It may be used by several goroutines. Its zero
// value has none.
type Stock struct {
	mu  sync.Mutex
	has map[int][]span // by timeline, in order, none touching another; guarded by mu
}

// span is files in a row: from first to before end.
type span struct{ first, end uint64 }

// Add adds a file.
func (s *Stock) Add(file Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has == nil {
		s.has = map[int][]span{}
	}
	all := s.has[file.Timeline]
	// The first that ends at the file, or behind it.
	at, _ := slices.BinarySearchFunc(all, file.Number, func(p span, n uint64) int {
		if p.end < n {
			return -1
		}
		return 1
	})
	switch {
	case at == len(all) || all[at].first > file.Number+1:
		all = slices.Insert(all, at, span{file.Number, file.Number + 1})
	case file.Number+1 == all[at].first:
		all[at].first = file.Number
	case all[at].end == file.Number:
		all[at].end++
		if at+1 < len(all) && all[at+1].first == all[at].end {
			all[at].end = all[at+1].end
			all = slices.Delete(all, at+1, at+2)
		}
	}
	s.has[file.Timeline] = all
}

// Missing returns the first file that is not there, of those that are needed to replay WAL from one
// point to another on this history. found is false if all are there.
func (s *Stock) Missing(h History, from, to Point) (missing Segment, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reached := false
	h.spans(from, to, func(timeline int, first, end uint64) bool {
		reached = timeline == to.Timeline
		if n := s.next(timeline, first); n < end {
			missing, found = Segment{timeline, n}, true
		}
		return !found
	})
	if !found && !reached {
		return Segment{from.Timeline, uint64(from.LSN) / SegmentSize}, true // from is not on the history
	}
	return missing, found
}

// next returns the first number from n on whose file is not there.
func (s *Stock) next(timeline int, n uint64) uint64 {
	for _, p := range s.has[timeline] {
		if p.first <= n && n < p.end {
			return p.end
		}
	}
	return n
}

// Has reports whether a file is there.
func (s *Stock) Has(file Segment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next(file.Timeline, file.Number) > file.Number
}

// Newest returns the newest file of a timeline.
func (s *Stock) Newest(timeline int) (Segment, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.has[timeline]
	if len(all) == 0 {
		return Segment{}, false
	}
	return Segment{timeline, all[len(all)-1].end - 1}, true
}
