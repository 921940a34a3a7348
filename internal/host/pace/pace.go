// Package pace spaces what is done again and again.
package pace

import (
	"context"
	"time"
)

// Sleep waits for d. It answers false when ctx ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Backoff spaces attempts that fail soon: at once, then after 1, 2, 4, … up to 30
// seconds. An attempt whose result lasted a minute starts the count again. The zero one has
// seen no attempt.
type Backoff struct {
	Failures int // attempts in a row that ended soon
	last     time.Time
}

// Ready reports whether it is time for an attempt.
func (b *Backoff) Ready(now time.Time) bool {
	if now.Sub(b.last) > time.Minute {
		b.Failures = 0
	}
	return b.Failures == 0 || now.Sub(b.last) >= min(time.Second<<min(b.Failures-1, 5), 30*time.Second)
}

// Attempt takes note of one.
func (b *Backoff) Attempt(now time.Time) {
	b.Failures++
	b.last = now
}
