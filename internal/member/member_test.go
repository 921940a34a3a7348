package member

import "testing"

func TestNearlyFull(t *testing.T) {
	const mib, gib = int64(1 << 20), int64(1 << 30)
	for _, c := range []struct {
		name       string
		size, free int64
		want       bool
	}{
		{"not known", 0, 0, false},
		{"small, with room", 400 * mib, 64 * mib, false},
		{"small, nearly full", 400 * mib, 64*mib - 1, true},
		{"large, a hundredth free", 100 * gib, gib, false},
		{"large, less than a hundredth", 100 * gib, gib - 1, true},
		{"nothing free", 100 * gib, 0, true},
	} {
		if got := NearlyFull(c.size, c.free); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
