package hosts

import (
	"testing"

	"howdah/internal/admin"
)

func TestLimitsOf(t *testing.T) {
	for _, c := range []struct{ text, held, missing string }{
		{"", "", ""},
		{"containment: cgroup2 in /x\ncpu limits: v2\nmemory limits: v1\nio limits: v1\nnote: IOPS limits: of writes\n", "cpu memory io", ""},
		{"cpu limits: v2\nio limits: none (why)\n", "cpu", "io"},
		{"cpu limits: none (a)\nmemory limits: none (b)\nio limits: none (c)\n", "", "cpu, memory, io"},
	} {
		if held, missing := limitsOf(admin.Host{Limits: c.text}); held != c.held || missing != c.missing {
			t.Errorf("%q: %q and %q", c.text, held, missing)
		}
	}
}
