package mark

import (
	"math/rand/v2"
	"testing"

	"howdah/internal/model/lsn"
)

func at(segment uint64, offset uint64) lsn.LSN { return lsn.LSN(segment*SegmentSize + offset) }

func TestNamesOfFiles(t *testing.T) {
	for _, name := range []string{"000000010000000000000001", "0000000A00000123000000FF", "00000002FFFFFFFF00000000"} {
		s, ok := ParseSegment(name)
		if !ok || s.String() != name {
			t.Errorf("%s: %v, %v", name, s, ok)
		}
	}
	for _, name := range []string{"", "00000002.history", "000000010000000000000100", "000000010000000000000001.partial", "00000001000000000000000g"} {
		if s, ok := ParseSegment(name); ok {
			t.Errorf("%q is %v", name, s)
		}
	}
	s, _ := ParseSegment("000000030000000100000002")
	if s.Timeline != 3 || lsn.LSN(s.Number*SegmentSize).String() != "1/2000000" {
		t.Errorf("%+v", s)
	}
}

func TestHistory(t *testing.T) {
	h, err := ParseHistory(3, "1\t0/3000148\tno recovery target specified\n\n# what a user wrote\n2\t0/5000000\tbefore it\n")
	if err != nil || len(h) != 3 || h[0] != (Branch{1, 0x3000148}) || h[1] != (Branch{2, 0x5000000}) || h[2] != (Branch{3, 0}) {
		t.Fatalf("%v, %v", h, err)
	}
	for _, c := range []struct {
		timeline int
		at       lsn.LSN
		has      bool
	}{{1, 0x3000148, true}, {1, 0x3000149, false}, {2, 0x4000000, true}, {2, 0x5000001, false}, {3, 0x7000000, true}, {4, 1, false}} {
		if h.Has(c.timeline, c.at) != c.has {
			t.Errorf("%d at %s: %v", c.timeline, c.at, !c.has)
		}
	}
	if h, err := ParseHistory(1, ""); err != nil || len(h) != 1 || h[0].Timeline != 1 {
		t.Errorf("the first timeline: %v, %v", h, err)
	}
	for _, bad := range []string{"1\n", "x 0/1\n", "1 0\n"} {
		if h, err := ParseHistory(2, bad); err == nil {
			t.Errorf("%q: %v", bad, h)
		}
	}
}

func TestMissing(t *testing.T) {
	forked := History{{1, at(5, 100)}, {2, at(8, 0)}, {3, 0}}
	files := func(timeline int, numbers ...uint64) (all []Segment) {
		for _, n := range numbers {
			all = append(all, Segment{timeline, n})
		}
		return all
	}
	all := append(append(files(1, 3, 4), files(2, 5, 6, 7)...), files(3, 8, 9)...)
	cases := map[string]struct {
		have     []Segment
		h        History
		from, to Point
		missing  Segment // zero: none
	}{
		"everything":                   {all, forked, Point{1, at(3, 7)}, Point{3, at(9, 50)}, Segment{}},
		"up to the end of a file":      {all, forked, Point{1, at(3, 7)}, Point{3, at(10, 0)}, Segment{}},
		"and one byte more":            {all, forked, Point{1, at(3, 7)}, Point{3, at(10, 1)}, Segment{3, 10}},
		"a backup of the next":         {files(3, 9), forked, Point{3, at(9, 7)}, Point{3, at(9, 50)}, Segment{}},
		"the first one":                {all[1:], forked, Point{1, at(3, 7)}, Point{3, at(9, 50)}, Segment{1, 3}},
		"of a timeline that was left":  {append(files(1, 3, 4), files(2, 5, 7)...), forked, Point{1, at(3, 7)}, Point{2, at(8, 0)}, Segment{2, 6}},
		"the file of the fork":         {append(files(1, 3, 4, 5), files(2, 6, 7)...), forked, Point{1, at(3, 7)}, Point{2, at(8, 0)}, Segment{2, 5}},
		"left where a file began":      {append(files(2, 5, 6, 7), files(3, 9)...), forked, Point{2, at(5, 200)}, Point{3, at(9, 1)}, Segment{3, 8}},
		"a backup of an old branch":    {all, forked, Point{4, at(3, 7)}, Point{3, at(9, 50)}, Segment{4, 3}},
		"nothing":                      {nil, History{{1, 0}}, Point{1, at(3, 7)}, Point{1, at(3, 50)}, Segment{1, 3}},
		"a backup in the fork's file":  {append(files(2, 5, 6, 7), files(3, 8)...), forked, Point{1, at(5, 50)}, Point{3, at(8, 1)}, Segment{}},
		"a mark before the fork's end": {files(1, 3, 4, 5), forked, Point{1, at(3, 7)}, Point{1, at(5, 100)}, Segment{}},
	}
	for name, c := range cases {
		var s Stock
		for _, f := range c.have {
			s.Add(f)
		}
		missing, found := s.Missing(c.h, c.from, c.to)
		if missing != c.missing || found != (c.missing != Segment{}) {
			t.Errorf("%s: %v, %v; want %v", name, missing, found, c.missing)
		}
	}
}

// TestStock: in whatever order files come, and however often, those are missing that did not come.
func TestStock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var s Stock
		have := map[uint64]bool{}
		for range random.IntN(40) {
			n := uint64(random.IntN(30))
			have[n] = true
			s.Add(Segment{1, n})
		}
		var last span
		for _, p := range s.has[1] {
			if p.first >= p.end || p.first <= last.end && last.end != 0 {
				t.Fatalf("%v", s.has[1])
			}
			last = p
		}
		for from := range uint64(30) {
			want := from
			for have[want] {
				want++
			}
			if got := s.next(1, from); got != want {
				t.Fatalf("of %v, from %d: %d, want %d", have, from, got, want)
			}
		}
	}
}
