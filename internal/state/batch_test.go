package state_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// Portions are as large as one transaction takes, keep their order, and have each key once.
func TestBatches(t *testing.T) {
	half := strings.Repeat("x", 600<<10)
	huge := strings.Repeat("x", 2<<20)
	for _, c := range []struct {
		name string
		ops  []state.Op
		want []int
	}{
		{"nothing", nil, nil},
		{"few", puts("k", 3), []int{3}},
		{"many", puts("k", 250), []int{100, 100, 50}},
		{"large", []state.Op{state.Put("a", half), state.Put("b", half), state.Put("c", 1)}, []int{1, 2}},
		{"one that is too large for any", []state.Op{state.Put("a", 1), state.Put("b", huge), state.Put("c", 1)}, []int{1, 1, 1}},
		{"one key again and again", []state.Op{state.Put("a", 1), state.Put("b", 1), state.Put("a", 2), state.Delete("a")}, []int{2, 1, 1}},
	} {
		var got []int
		for batch := range state.Batches(c.ops) {
			got = append(got, len(batch))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: portions of %v, want %v", c.name, got, c.want)
		}
	}
}

func puts(prefix string, n int) []state.Op {
	var ops []state.Op
	for i := range n {
		ops = append(ops, state.Put(fmt.Sprintf("/howdah/route/%s%04d", prefix, i), i))
	}
	return ops
}

// A real etcd takes any number of changes. It takes none under a condition that does not hold.
func TestCommitEach(t *testing.T) {
	s := etcdtest.Store(t)
	count := func() int {
		all, err := state.List[int](t.Context(), s, "/howdah/route/")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if revision, err := s.CommitEach(t.Context(), nil); err != nil || revision != 0 {
		t.Errorf("nothing to do: %d, %v", revision, err)
	}
	guard, err := s.Commit(t.Context(), state.Put("/howdah/meta/guard", 1))
	if err != nil {
		t.Fatal(err)
	}
	holds := state.Unchanged("/howdah/meta/guard", guard)
	if revision, err := s.CommitEach(t.Context(), puts("a", 1000), holds); err != nil || revision <= guard || count() != 1000 {
		t.Fatalf("revision %d, %v, %d keys", revision, err, count())
	}
	if _, err := s.Commit(t.Context(), state.Put("/howdah/meta/guard", 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CommitEach(t.Context(), puts("b", 1000), holds); !errors.Is(err, state.ErrConflict) || count() != 1000 {
		t.Errorf("under a condition that does not hold: %v, %d keys", err, count())
	}
	large := make([]state.Op, 30)
	for i := range large {
		large[i] = state.Put(fmt.Sprintf("/howdah/route/large%d", i), strings.Repeat("x", 200<<10))
	}
	if _, err := s.CommitEach(t.Context(), large); err != nil {
		t.Errorf("6 MB: %v", err)
	}
}
