package state

import (
	"testing"
	"time"
)

// UpTo is for tests beside the package.
var UpTo = upTo

// Impatient has calls without a deadline answered within d.
func Impatient(t *testing.T, d time.Duration) {
	t.Helper()
	old := answerWithin
	answerWithin = d
	t.Cleanup(func() { answerWithin = old })
}
