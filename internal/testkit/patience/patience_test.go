package patience

import (
	"testing"
	"time"
)

func TestFor(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Second, "1": time.Second, "3": 3 * time.Second, "0": time.Second, "-2": time.Second, "much": time.Second} {
		t.Setenv("HOWDAH_TEST_PATIENCE", text)
		if got := For(time.Second); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
