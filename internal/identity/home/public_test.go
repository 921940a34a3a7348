package home

import (
	"path/filepath"
	"testing"
)

func TestPublicPoolIsRemembered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	const pool, other = "203.0.113.0/24", "198.51.100.0/24"
	for _, step := range []struct {
		asked *string
		want  string
	}{{nil, ""}, {new(pool), pool}, {nil, pool}, {new(other), other}, {new(""), ""}, {nil, ""}} {
		if _, err := Ensure(dir, Options{PublicPool: step.asked}); err != nil {
			t.Fatal(err)
		}
		h, err := Open(dir)
		if err != nil || h.PublicPool != step.want {
			t.Errorf("%q, %v, want %q", h.PublicPool, err, step.want)
		}
	}
	fresh, err := Ensure(filepath.Join(t.TempDir(), "home"), Options{PublicPool: new(pool)})
	if err != nil || fresh.PublicPool != pool {
		t.Errorf("a new home: %+v, %v", fresh, err)
	}
}
