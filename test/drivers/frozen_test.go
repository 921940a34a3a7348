package drivers

import (
	"testing"
	"time"

	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
)

// frozenFor is how long something stands still at most.
const frozenFor = 90 * time.Second

// What stands still answers nobody and closes no connection: a driver alone would wait for ever.
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

// The primary's host stands still, and then PostgreSQL alone, under three programs: one with the wrapper's
// failover and host monitoring, one with failover only, and one with the plain driver. Monitoring and the
// plain driver have to work again while it does: the first because it looks, the second because the edge
// ends its connections. The third is there to be compared.
func TestFrozen(t *testing.T) {
	f := begin(t, aurora, func(*rig.Options) {}, inHosts)
	f.eachLanguage(func(f *fleet, l language, command []string) {
		arms := []*arm{
			f.arm(l, command, "watched", l.failover, "DB_MORE="+l.watch),
			f.arm(l, command, "unwatched", l.unwatched),
			f.arm(l, command, "plain", ""),
		}
		for range times(f, 2) {
			for _, freeze := range freezes {
				f.ready(arms)
				instance, m := f.leader()
				f.Logf("%s of %s stands still", freeze.name, instance)
				thaw, err := freeze.freeze(f, m)
				f.must(err)
				f.workAgain(arms, time.Now())
				f.must(thaw())
			}
		}
		f.finish(arms)
	})
}

// workAgain waits for all arms. The one without monitoring may not work before the thaw.
func (f *fleet) workAgain(arms []*arm, frozen time.Time) {
	f.Helper()
	worked := map[*arm]bool{}
	for deadline := frozen.Add(patience.For(frozenFor)); len(worked) < len(arms) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, a := range arms {
			if !worked[a] && f.wrote(a, frozen) == nil {
				worked[a] = true
			}
		}
	}
	for _, a := range arms {
		switch {
		case worked[a]:
		case a == arms[1]:
			f.Logf("%s: not before the thaw", a.database)
		default:
			f.Errorf("%s did nothing for %s: %s", a.database, time.Since(frozen), a.end())
		}
	}
}
