package drivers

import (
	"testing"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
)

// frozenFor is how long something stands still at most.
const frozenFor = 90 * time.Second

// What stands still answers nobody and closes no connection.
var freezes = []struct {
	name   string
	freeze func(*fleet, rig.Member) (thaw func() error, err error)
}{
	{"its host", func(f *fleet, m rig.Member) (func() error, error) { return f.rig.FreezeHost(m.ZoneLetter()) }},
	{"its PostgreSQL", func(_ *fleet, m rig.Member) (func() error, error) {
		frozen, err := m.FreezePostgres()
		return frozen.Thaw, err
	}},
}

// The primary's host stands still, and then PostgreSQL alone, under four programs: with the wrapper's failover
// and host monitoring, with either alone, and with the plain driver. All have to work again while it stands
// still: monitoring sees it, and the edge ends connections to a server that leads no more. When a statement
// failed first tells which of the two was it.
func TestFrozen(t *testing.T) {
	f := begin(t, aurora, func(*rig.Options) {}, inHosts)
	f.eachLanguage(func(f *fleet, l language, command []string) {
		watch := "DB_MORE=" + l.watch
		arms := []*arm{
			f.arm(l, command, "wrapper", l.failover, watch),
			f.arm(l, command, "unwatched", l.unwatched),
			f.arm(l, command, "monitored", l.monitor, watch),
			f.arm(l, command, "plain", ""),
		}
		for range times(f, 2) {
			for _, freeze := range freezes {
				f.ready(arms)
				instance, m := f.leader()
				f.Logf("%s of %s stands still", freeze.name, instance)
				thaw, err := freeze.freeze(f, m)
				frozen := time.Now()
				f.must(err)
				for _, a := range arms {
					testkit.Eventually(f.T, patience.For(frozenFor), func() error { return f.wrote(a, frozen, time.Second) })
					f.Logf("%s: a statement failed after %.2f s", a.database, a.failedAfter(frozen).Seconds())
				}
				f.must(thaw())
			}
		}
		f.finish(arms)
	})
}

// failedAfter is how long after a moment a statement failed; 0: none has.
func (a *arm) failedAfter(at time.Time) time.Duration {
	for _, l := range a.all("failed") {
		if l.at.After(at) {
			return l.at.Sub(at)
		}
	}
	return 0
}
