// Package pace makes pauses between things that are done again and again.
package pace

import (
	"context"
	"time"
)

// Sleep waits for d, if it is above 0. It returns false if ctx ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Backoff makes pauses between attempts that soon fail: none at first, then 1, 2, 4, … up to 30
// seconds. An attempt whose result lasted a minute starts the count again. The zero value has seen
// no attempt.
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

// Attempt records an attempt.
func (b *Backoff) Attempt(now time.Time) {
	b.Failures++
	b.last = now
}
