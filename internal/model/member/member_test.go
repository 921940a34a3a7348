package member

import (
	"testing"
	"time"
)

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

func TestTheLimitOfATask(t *testing.T) {
	now := time.Now()
	cases := []struct {
		name   string
		within time.Duration
		left   time.Duration // until the deadline, by the clock of the host
		want   time.Duration
	}{
		{"clocks agree", 2 * time.Minute, 2 * time.Minute, 2 * time.Minute},
		{"the host's clock is ahead", 2 * time.Minute, -time.Minute, 2 * time.Minute},
		{"the host's clock is behind", 2 * time.Minute, time.Hour, 2 * time.Minute},
		{"forgotten", 2 * time.Minute, -3 * time.Minute, 0},
		{"of an older control plane", 0, time.Minute, time.Minute},
		{"of an older control plane, forgotten", 0, -time.Minute, 0},
	}
	for _, c := range cases {
		task := Task{Within: c.within, Deadline: now.Add(c.left)}
		if got := task.Limit(now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
