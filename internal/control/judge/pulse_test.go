package judge

import (
	"testing"
	"time"

	"howdah/internal/model/member"
)

func TestPulse(t *testing.T) {
	p, began := NewPulse(), time.Now()
	p.since = time.Now().Add(-time.Minute)
	if s := p.Silence("a"); s < time.Minute || p.Heard("a") {
		t.Errorf("a host that was never heard is silent since we listen: %s", s)
	}
	p.Beat("a", "")
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

// What an agent wrote is believed while that agent is heard; what agents wrote that are
// heard elsewhere, once the judge has had the time to find out who lives.
func TestPulseVouches(t *testing.T) {
	for _, c := range []struct {
		name      string
		listening time.Duration
		silence   time.Duration // negative: never heard
		heard     string
		wrote     string
		want      bool
	}{
		{"that of the agent that is heard", time.Second, 0, "x", "x", true},
		{"that of the one before", time.Second, 0, "x", "w", false},
		{"also after long", time.Hour, time.Second, "x", "w", false},
		{"that of an agent of an older release", time.Second, 0, "", "", true},
		{"that of one before the upgrade", time.Second, 0, "x", "", false},
		{"of a host that was not heard yet", time.Second, -1, "", "x", false},
		{"an older release's, of such a host", time.Second, -1, "", "", false},
		{"of a host that others hear", time.Minute, -1, "", "x", true},
		{"of a host that others hear by now", time.Minute, 6 * time.Second, "w", "x", true},
		{"of a host that fell silent at once", 7 * time.Second, 6 * time.Second, "x", "x", false},
	} {
		p := NewPulse()
		p.since = time.Now().Add(-c.listening)
		if c.silence >= 0 {
			p.Beat("a", c.heard)
			p.last["a"] = time.Now().Add(-c.silence)
		}
		if got := p.Vouches("a", c.wrote); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
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
