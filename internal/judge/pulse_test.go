package judge

import (
	"testing"
	"time"

	"howdah/internal/member"
)

func TestPulse(t *testing.T) {
	p, began := NewPulse(), time.Now()
	p.since = time.Now().Add(-time.Minute)
	if s := p.Silence("a"); s < time.Minute || p.Heard("a") {
		t.Errorf("a host that was never heard is silent since we listen: %s", s)
	}
	p.Beat("a")
	if s := p.Silence("a"); s > time.Since(began) || !p.Heard("a") || p.Heard("b") {
		t.Errorf("silent for %s after a beat", s)
	}
	p.last["a"] = time.Now().Add(-10 * time.Second)
	p.Stall(8 * time.Second)
	if s := p.Silence("a"); s < 2*time.Second || s > 2*time.Second+time.Since(began) {
		t.Errorf("silent for %s: the time that we stood still ourselves does not count", s)
	}
	if s := p.Silence("b"); s < 52*time.Second || s > 52*time.Second+time.Since(began) {
		t.Errorf("silent for %s", s)
	}
}

func TestHarmless(t *testing.T) {
	for _, c := range []struct {
		name string
		r    member.Report
		want bool
	}{
		{"down", member.Report{}, true},
		{"runs, in no known role", member.Report{Postgres: true}, false},
		{"takes writes", member.Report{Postgres: true, Ready: true}, false},
		{"follows", member.Report{Postgres: true, Ready: true, InRecovery: true}, true},
		{"follows, as its socket says", member.Report{Postgres: true, Follows: true}, true},
	} {
		if got := harmless(c.r); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
