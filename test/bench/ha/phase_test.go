package main

import (
	"testing"
	"time"

	"howdah/internal/failover/postmortem"
)

func TestPhase(t *testing.T) {
	struck := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return struck.Add(time.Duration(seconds * float64(time.Second))) }
	whole := postmortem.Record{
		Detected: at(2), Fenced: at(2.1), Revoked: at(2.11), Elected: at(2.2), Promoted: at(2.4), Switched: at(2.41), FirstWrite: at(2.5),
	}
	late := whole
	late.FirstWrite = at(6)
	cases := []struct {
		name string
		r    postmortem.Record
		back time.Time
		want string
	}{
		{"a lost host", whole, at(2.6), "greatest: 2.00 s to be noticed"},
		{"a standby that follows late", late, at(6.1), "greatest: 3.59 s until a write was confirmed"},
		{"writers that come late", whole, at(9), "greatest: 6.50 s until all writers were back"},
		{"nothing known", postmortem.Record{}, at(3), "greatest: 3.00 s until all writers were back"},
		{"nothing at all", postmortem.Record{}, time.Time{}, ""},
	}
	for _, c := range cases {
		if got := phase(struck, c.back, c.r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
