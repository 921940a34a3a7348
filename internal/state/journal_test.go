package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestAJournalTellsWhatChangedSince(t *testing.T) {
	var j journal
	for change, keys := range [][]string{1: {"/a/1", "/b/1"}, 2: {"/a/2"}, 3: {"/b/2", "/a/1"}} {
		for _, key := range keys {
			j.add(int64(change), key)
		}
	}
	for _, c := range []struct {
		since    int64
		prefixes []string
		want     []string
	}{
		{0, []string{"/a/"}, []string{"/a/1", "/a/2", "/a/1"}},
		{1, []string{"/a/"}, []string{"/a/2", "/a/1"}},
		{1, []string{"/a/", "/b/"}, []string{"/a/2", "/b/2", "/a/1"}},
		{2, []string{"/b/"}, []string{"/b/2"}},
		{3, []string{"/a/", "/b/"}, nil},
		{0, []string{"/c/"}, nil},
	} {
		if keys, complete := j.since(c.since, c.prefixes); !complete || !slices.Equal(keys, c.want) {
			t.Errorf("since %d: %v (complete: %v), want %v", c.since, keys, complete, c.want)
		}
	}
	j.forget(4)
	if _, complete := j.since(3, nil); complete {
		t.Error("a reload is no change that it could tell of")
	}
	if keys, complete := j.since(4, []string{"/"}); !complete || len(keys) > 0 {
		t.Errorf("after the reload: %v, %v", keys, complete)
	}
}

// A journal may forget, but must not tell too little: if it says that an answer is complete, a list
// of everything has the same answer.
func TestAJournalKnowsWhatItForgot(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var j journal
	var all []note
	for change := int64(1); len(all) < 5*journalSize; change++ {
		for range 1 + random.IntN(5) { // some changes are longer than what is cut off
			n := note{change, fmt.Sprintf("/k/%d", random.IntN(100))}
			j.add(n.change, n.key)
			all = append(all, n)
		}
		if change%997 != 0 {
			continue
		}
		since := random.Int64N(change + 1)
		keys, complete := j.since(since, []string{"/k/"})
		var want []string
		for _, n := range all {
			if n.change > since {
				want = append(want, n.key)
			}
		}
		if complete && !slices.Equal(keys, want) {
			t.Fatalf("since %d of %d: %d keys, want %d", since, change, len(keys), len(want))
		}
		if !complete && len(want) <= journalSize {
			t.Fatalf("since %d of %d: only %d keys changed, and it forgot them", since, change, len(want))
		}
	}
}
