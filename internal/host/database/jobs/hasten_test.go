package jobs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"howdah/internal/engine/pgbackrest"
)

// A standby makes restartpoints until its files are copied, also if one fails, and not for ever.
func TestAStandbyMakesRestartpointsUntilItIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := &Host{Engine: pgbackrest.Engine{}, Log: slog.New(slog.DiscardHandler), Checkpoint: func(_ context.Context, id string) error {
			if asked++; id != "db-1.m2" {
				t.Errorf("%s is asked", id)
			}
			return errors.New("it does not answer")
		}}
		begin := func() (*run, func()) {
			asked = 0
			r := &run{Host: h}
			return r, r.hasten(t.Context(), "db-1.m2")
		}
		r, end := begin()
		time.Sleep(3*hastenEvery + time.Second)
		r.tell("P00   INFO: wait for replay on the standby to reach 0/191B2330")
		time.Sleep(hastenEvery)
		if asked != 4 {
			t.Errorf("it was asked %d times while the engine waits", asked)
		}
		r.copies.Store(true)
		time.Sleep(time.Hour)
		if asked != 4 {
			t.Errorf("it was asked %d times, also while it was copied", asked)
		}
		end()
		_, end = begin()
		time.Sleep(time.Hour)
		if most := int(hastenFor / hastenEvery); asked == 0 || asked > most {
			t.Errorf("it was asked %d times of a backup that tells nothing", asked)
		}
		end()
		_, end = begin()
		end()
		if asked != 0 {
			t.Error("it is asked when the backup is over")
		}
	})
}
