package jobs

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/database/archive"
	"howdah/internal/host/job"
	"howdah/internal/system/owner"
)

// TestAPlaceIsAwaited after the agent was started: a backup that goes on is not given up.
func TestAPlaceIsAwaited(t *testing.T) {
	errBroken := errors.New("broken")
	for name, c := range map[string]struct {
		after time.Duration // 0: never
		err   error         // before that
		want  error
		took  time.Duration // at least
	}{
		"known":      {after: 1},
		"a bit late": {after: 5 * time.Second, err: fmt.Errorf("%w of db-1.m1", archive.ErrAwaited), took: 5 * time.Second},
		"never":      {err: archive.ErrAwaited, want: archive.ErrAwaited, took: placeWithin},
		"broken":     {err: errBroken, want: errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				h := &Host{
					User: func(string) *owner.User { return nil },
					Place: func(string) (backup.Place, error) {
						if c.after > 0 && time.Since(began) >= c.after || c.err == nil {
							return backup.Place{Database: "db-1"}, nil
						}
						return backup.Place{}, c.err
					},
				}
				r, err := h.memberPlace(t.Context(), job.Call{}, "db-1.m1")
				if !errors.Is(err, c.want) || err == nil && r.place.Database != "db-1" {
					t.Errorf("%v", err)
				}
				if took := time.Since(began); took < c.took || took > c.took+time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
