package depth

import (
	"fmt"
	"slices"
	"testing"
)

func TestSome(t *testing.T) {
	all := []int{0, 1, 2, 3, 4}
	t.Setenv(Draw, "")
	if got := Some(t, 2, all); !slices.Equal(got, all) {
		t.Errorf("without a draw: %v", got)
	}
	seen := map[int]bool{}
	for seed := range 60 {
		t.Setenv(Draw, fmt.Sprint(seed))
		got := Some(t, 2, all)
		if len(got) != 2 || got[0] >= got[1] || !slices.Equal(got, Some(t, 2, all)) {
			t.Errorf("drawn %v", got)
		}
		seen[got[0]], seen[got[1]] = true, true
		if got := Some(t, 5, all); !slices.Equal(got, all) {
			t.Errorf("all are wanted: %v", got)
		}
	}
	if len(seen) != len(all) {
		t.Errorf("60 commits have drawn %v only", seen)
	}
}

// TestDeep: one run of six has it, and each run without a draw.
func TestDeep(t *testing.T) {
	const runs = 600
	n := 0
	for seed := range runs {
		if drawn(fmt.Sprint(seed), "TestThis") {
			n++
		}
	}
	if n < runs/of/2 || n > runs/of*2 {
		t.Errorf("%d of %d runs have it", n, runs)
	}
	if !drawn("", "TestThis") {
		t.Error("without a draw it does not run")
	}
}
