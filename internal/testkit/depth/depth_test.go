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

// TestOne: each run has one of the group, and one run after the other has all.
func TestOne(t *testing.T) {
	group := []string{"TestThis", "TestThat", "TestTheOther"}
	seen := map[string]int{}
	for seed := range 60 {
		n := 0
		for _, name := range group {
			if chosen(fmt.Sprint(seed), name, group) {
				seen[name]++
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d are drawn", n)
		}
	}
	if len(seen) != len(group) || !chosen("", "TestThat", group) {
		t.Errorf("drawn are %v", seen)
	}
}
