package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"howdah/internal/host/hostapi"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/state/format"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// The records of the home are of a newer release. What runs goes on; nothing new is begun, and
// each member says why.
func TestRecordsOfANewerRelease(t *testing.T) {
	d := newDorm(t)
	stop := d.run()
	a := d.start()
	started := d.leader(a.ID)
	d.Put(state.Control("s1"), hostapi.ControlMember{Name: "s1", URL: d.Control[0], Said: format.Said{Reads: format.Newest + 1, Format: format.Newest + 1, Release: "99.1"}})
	refused := func(id string) func(member.Report) error {
		return func(r member.Report) error {
			if r.Problem != member.BadAssignment || !strings.Contains(r.Detail, "start howdah 99.1 or newer") {
				return fmt.Errorf("%s: %s, %s", id, r.Problem, r.Detail)
			}
			return nil
		}
	}
	for restarted := range 2 {
		if restarted == 1 {
			stop() // one that begins later knows it before anything else
			d.run()
		} else {
			testkit.Eventually(t, hosttest.Soon, func() error { // it was heard
				a.Generation++
				d.Assign(a)
				time.Sleep(lookEvery)
				r, err := state.Get[member.Report](t.Context(), d.Store, state.Report(hosttest.Name, a.ID))
				if err == nil {
					err = refused(a.ID)(r.Value)
				}
				return err
			})
		}
		later := d.Assignment(fmt.Sprintf("db-%d", 2+restarted), 1)
		d.Assign(later)
		d.Awaits(later.ID, hosttest.Soon, refused(later.ID))
		r := d.Awaits(a.ID, hosttest.Soon, refused(a.ID))
		if !r.Patroni || d.leader(a.ID) != started {
			t.Errorf("what ran does not go on: %+v", r)
		}
		if d.leader(later.ID) != (proc.Process{}) {
			t.Errorf("%s was begun", later.ID)
		}
	}
}
