package agent

import "time"

// backoff spaces attempts that fail soon: at once, then after 1, 2, 4, … up to 30
// seconds. An attempt whose result lasted a minute starts the count again.
type backoff struct {
	failures int
	last     time.Time
}

func (b *backoff) ready(now time.Time) bool {
	if now.Sub(b.last) > time.Minute {
		b.failures = 0
	}
	return b.failures == 0 || now.Sub(b.last) >= min(time.Second<<min(b.failures-1, 5), 30*time.Second)
}

func (b *backoff) attempt(now time.Time) {
	b.failures++
	b.last = now
}
