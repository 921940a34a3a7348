package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/state/format"
	"howdah/internal/testkit"
)

// The records of the home are of a newer release. What runs goes on; nothing new is begun, and
// each member says why.
func TestRecordsOfANewerRelease(t *testing.T) {
	w := newWorld(t, waits)
	_, stop := w.run(nil)
	a := w.assignment("db-1", 1)
	w.assign(a)
	w.awaits(a.ID, soon, running(1))
	w.put(state.Control("s1"), hostapi.ControlMember{Name: "s1", URL: w.Control[0], Said: format.Said{Reads: format.Newest + 1, Format: format.Newest + 1, Release: "99.1"}})
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
			w.run(nil)
		} else {
			testkit.Eventually(t, soon, func() error { // it was heard
				a.Generation++
				w.assign(a)
				time.Sleep(lookEvery)
				r, err := state.Get[member.Report](t.Context(), w.store, state.Report(hostName, a.ID))
				if err == nil {
					err = refused(a.ID)(r.Value)
				}
				return err
			})
		}
		later := w.assignment(fmt.Sprintf("db-%d", 2+restarted), 1)
		w.assign(later)
		w.awaits(later.ID, soon, refused(later.ID))
		r := w.awaits(a.ID, soon, refused(a.ID))
		if !r.Patroni || len(w.lines(a.ID, "starts")) != 1 {
			t.Errorf("what ran does not go on: %+v", r)
		}
		if starts := w.lines(later.ID, "starts"); len(starts) != 0 {
			t.Errorf("%s was begun", later.ID)
		}
	}
}
