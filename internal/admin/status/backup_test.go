package status

import (
	"testing"
	"time"

	"howdah/internal/model/backup"
)

// A late backup is told of with what there is.
func TestTheTextOfALateBackup(t *testing.T) {
	for want, a := range map[string]backup.Automated{
		"its first automated backup is not made yet: no moment of it can be restored":          {},
		"its newest automated backup is of 2026-11-24 03:00:00Z, and the next one is not made": {Made: time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)},
	} {
		if got := lateText(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
