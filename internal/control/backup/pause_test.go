package backup

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
)

// TestPauses: after a failure nothing is tried for a while, also if the clock is set back meanwhile,
// as the pause is not longer then than it may be.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano)
		run := &step.Run{Record: operation.Record{Notes: map[string]string{noteAgain: again, noteWhy: "no room"}}}
		if _, paused := pausing(run); !paused {
			t.Error("no pause")
		}
		time.Sleep(time.Minute)
		if _, paused := pausing(run); paused {
			t.Error("the pause does not end")
		}
		// A control plane whose clock is far behind leads now.
		run.Record.Notes[noteAgain] = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339Nano)
		if _, paused := pausing(run); paused {
			t.Error("a pause of a day")
		}
	})
}

func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Backups{}
		run := &step.Run{Record: operation.Record{Deadline: time.Now().Add(time.Hour), Trouble: "no primary"}}
		time.Sleep(59 * time.Minute)
		if err := b.tooLate(run, backup.TakeArgs{Automated: true}); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if err := b.tooLate(run, backup.TakeArgs{Automated: true}); err == nil || !strings.Contains(err.Error(), "no primary") {
			t.Error(err)
		}
		if err := b.tooLate(run, backup.TakeArgs{}); err != nil {
			t.Errorf("what users asked for: %v", err)
		}
	})
}

func TestRetries(t *testing.T) {
	last := time.Duration(0)
	for attempt := range 100 {
		pause := retry(attempt)
		if pause < firstRetry || pause < last || pause > longestRetry {
			t.Errorf("attempt %d: %s", attempt, pause)
		}
		last = pause
	}
}
