package state

import (
	"testing"
	"time"
)

// UpTo makes upTo available to tests in other packages.
var UpTo = upTo

// Impatient makes calls without a deadline end within d.
func Impatient(t *testing.T, d time.Duration) {
	t.Helper()
	old := answerWithin
	answerWithin = d
	t.Cleanup(func() { answerWithin = old })
}
