package verdict

import "testing"

func TestKnee(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []Step
		at    int // clients; 0 for none
	}{
		{"none", nil, 0},
		{"one", []Step{{1, 100}}, 0},
		{"it rises to the end", []Step{{1, 100}, {2, 190}, {4, 350}}, 0},
		{"it flattens", []Step{{1, 100}, {2, 190}, {4, 350}, {8, 360}, {16, 362}}, 4},
		{"it falls", []Step{{1, 100}, {2, 90}}, 1},
		{"just enough", []Step{{1, 100}, {2, 110.1}, {4, 121.0}}, 2},
		{"in another order", []Step{{8, 360}, {1, 100}, {4, 350}, {2, 190}}, 4},
		{"small steps count by what they would double to", []Step{{8, 100}, {10, 112}, {12, 122}, {14, 122.5}}, 12},
		{"a large step", []Step{{1, 100}, {64, 130}, {128, 131}}, 1},
		{"a step without throughput is left out", []Step{{1, 100}, {2, 0}, {4, 300}, {8, 310}}, 4},
		{"a step that is there twice", []Step{{1, 100}, {1, 101}, {2, 190}, {4, 195}}, 2},
	} {
		got, found := Knee(c.steps)
		if found != (c.at != 0) || got.Clients != c.at {
			t.Errorf("%s: %+v, %t, want %d", c.name, got, found, c.at)
		}
	}
}

func TestKneeLeavesTheSteps(t *testing.T) {
	steps := []Step{{4, 3}, {1, 1}}
	Knee(steps)
	if steps[0].Clients != 4 {
		t.Error("the steps were sorted in place")
	}
}
