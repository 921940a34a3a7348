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

func TestCacheText(t *testing.T) {
	for _, tt := range []struct {
		c    admin.Cache
		want string
	}{
		{admin.Cache{State: "waiting", Percent: 99.4, Known: true}, "the cache of m2 has 99 % of what is hot in the primary's"},
		{admin.Cache{State: "paused", Why: "cold limit", Percent: 97, Known: true}, "the cache of m2 has 97 % of what is hot in the primary's; held up: cold limit"},
		{admin.Cache{State: "paused", Why: "replay lag", Percent: 97}, "nothing is known yet of the cache of m2; held up: replay lag"},
		{
			admin.Cache{State: "from outside", Percent: 40, Known: true, Outside: true},
			"the cache of m2 has 40 % of what is hot in the primary's; its agent sees to it until PostgreSQL is rebooted with the library ccm",
		},
	} {
		if got := cacheText("m2", tt.c); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.c, got, tt.want)
		}
	}
}
