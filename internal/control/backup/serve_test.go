package backup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// follow has m2, the standby of a database whose primary is m1, follow well, but for a change.
func (s *site) follow(i spec.Instance, change func(primary, standby *member.Report)) {
	s.t.Helper()
	primary := member.Report{Ready: true, OwnKey: true, Timeline: 3, Archived: &member.Archived{}}
	standby := member.Report{Ready: true, InRecovery: true, Streaming: true, OwnKey: true, Timeline: 3}
	if change != nil {
		change(&primary, &standby)
	}
	s.put(state.Put(state.Report("zone-a", member.ID(i.ResourceID, "m1")), primary), state.Put(state.Report("zone-b", member.ID(i.ResourceID, "m2")), standby))
}

// jobs lists the keys of jobs that hosts still have.
func (s *site) jobs() string {
	s.t.Helper()
	var names []string
	for _, r := range state.ViewAll[member.Job](s.cache, state.JobRoot) {
		names = append(names, r.Key)
	}
	return strings.Join(names, " ")
}

// TestAStandbyIsBackedUp, and nothing is left of how its primary was served.
func TestAStandbyIsBackedUp(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.follow(i, nil)
	r := s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	asked, served := s.yard.asked[0], s.yard.served[0]
	if r.Notes[noteHost] != "zone-b" || asked.Member != "m2" || asked.Primary == nil || asked.Primary.Address != "zone-a" {
		t.Errorf("%+v asked for %+v", r, asked)
	}
	if served != (backup.ServeJob{Database: i.ResourceID, Member: "m1", Standby: "m2"}) {
		t.Errorf("served %+v", served)
	}
	if all := s.records(i.ResourceID); len(all) != 1 || all[0].Member != "m2" || !all[0].Standby {
		t.Errorf("%+v", all)
	}
	if left := s.jobs(); left != "" {
		t.Errorf("%s is left", left)
	}
	s.clean(i.ResourceID)
}

// TestThePrimaryIsBackedUp where no standby can be.
func TestThePrimaryIsBackedUp(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	for n, change := range []func(primary, standby *member.Report){
		func(_, r *member.Report) { r.Paused = true },
		func(_, r *member.Report) { r.LagSeconds = 3600 },
		func(_, r *member.Report) { r.Streaming = false },
		func(_, r *member.Report) { r.Ready = false },
		func(_, r *member.Report) { r.Timeline = 2 },
		func(_, r *member.Report) { r.OwnKey = false },
		func(r, _ *member.Report) { r.OwnKey = false },
	} {
		s.follow(i, change)
		s.ends(s.snapshot(i, fmt.Sprintf("s%d", n), backup.Take, nil), operation.Done)
		if got := s.yard.asked[n]; got.Member != "m1" || got.Primary != nil {
			t.Errorf("%d: asked for %+v", n, got)
		}
	}
	if all := s.records(i.ResourceID); all[0].Member != "m1" || all[0].Standby || len(s.yard.served) > 0 {
		t.Errorf("%+v", all)
	}
}

// TestABackupOfAStandbyThatFails, whatever for, is made of the primary. After a failover it is that of
// a standby again.
func TestABackupOfAStandbyThatFails(t *testing.T) {
	for _, why := range []string{"it lags", "!it is of another release"} {
		s := newSite(t)
		s.yard.fails["zone-b"] = why
		s.lead(s.runner, s.elect())
		i := s.instance("orders", "zone-a", nil)
		s.follow(i, nil)
		r := s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
		if all := s.records(i.ResourceID); r.Notes[noteFailures] != "1" || all[0].Member != "m1" || all[0].Standby || s.jobs() != "" {
			t.Errorf("%+v, %+v, %s", r, all, s.jobs())
		}
		s.clean(i.ResourceID)
	}
}

// TestAPrimaryThatIsServedNoMore ends the backup of its standby, which would wait for it.
func TestAPrimaryThatIsServedNoMore(t *testing.T) {
	s := newSite(t)
	s.yard.slow = true
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.follow(i, nil)
	id := s.snapshot(i, "first", backup.Take, nil)
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := s.operation(id); r.Progress.Of != 2 || r.Notes[noteHost] != "zone-b" {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.yard.set(func() { s.yard.lost["zone-a"] = true })
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := s.operation(id); r.Step != stepRun || r.Notes[noteHost] != "zone-a" {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.yard.set(func() { s.yard.slow = false })
	s.ends(id, operation.Done)
	if all := s.records(i.ResourceID); all[0].Member != "m1" || s.jobs() != "" {
		t.Errorf("%+v, %s", all, s.jobs())
	}
}

// TestACancelledBackupOfAStandby leaves no server.
func TestACancelledBackupOfAStandby(t *testing.T) {
	s := newSite(t)
	s.yard.slow = true
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.follow(i, nil)
	id := s.snapshot(i, "first", backup.Take, nil)
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := s.operation(id); r.Progress.Of != 2 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.put(state.Put(state.OperationCancel(id), operation.Wish{By: "KEY"}))
	s.ends(id, operation.Cancelled)
	if left := s.jobs(); left != "" {
		t.Errorf("%s is left", left)
	}
}
