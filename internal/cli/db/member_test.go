package db

import (
	"testing"

	"howdah/internal/admin"
)

func TestLagText(t *testing.T) {
	lag := func(bytes int64, seconds float64) string {
		return lagText(admin.Member{LagBytes: &bytes, LagSeconds: &seconds})
	}
	for _, c := range []struct{ got, want string }{
		{lag(0, 3600), "0 B"}, {lag(10, 0.01), "10 B"}, {lag(2048, 2), "2.0 KiB, 2.0 s"}, {lagText(admin.Member{}), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, not %q", c.got, c.want)
		}
	}
}
