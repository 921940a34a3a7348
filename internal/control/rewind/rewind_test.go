package rewind

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/identity/secret"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// advance plays what the operation waits for next, at the step that it is at.
func (s *site) advance() {
	s.t.Helper()
	switch s.operation().Step {
	case stepSnapshot:
		s.shot(backup.Available, "")
	case stepRestore:
		s.serve(newID)
	case stepClose:
		if s.instance("orders").ClosedBy != "" {
			s.told(oldID, true)
		}
	}
}

func TestADatabaseGoesBack(t *testing.T) {
	s := newSite(t, nil)
	s.run()
	s.reaches(stepSnapshot, "the snapshot kept is being made")
	s.shot(backup.Available, "")
	s.reaches(stepRestore, "it waits for a host")
	if s.instance("orders").ClosedBy != "" {
		t.Error("it is closed before there is anything to take its place")
	}
	s.serve(newID)
	s.reaches(stepClose, "m1 on host zone-a ends")
	s.told(oldID, false)
	s.reaches(stepClose, "m1 on host zone-a ends")
	// Somebody sets tags meanwhile.
	old := s.instance("orders")
	old.Tags = []spec.Tag{{Key: "team", Value: "green"}}
	s.put(state.Put(keyOf(old), old))
	s.told(oldID, true)
	s.ends(operation.Done)
	s.exchanged()
	next := s.instance("orders")
	if next.Tags[0].Value != "green" || !next.DeletionProtection || next.Reboot != 0 || next.ChangeStatus != plan.Modifying || strings.Join(next.Replaced, " ") != oldID {
		t.Errorf("%+v", next)
	}
	a, err := state.Get[backup.Automated](t.Context(), s.store, state.Automated(oldID))
	if err != nil || !a.Value.Retained || a.Value.Name != "orders" || a.Value.Until != until.Add(time.Hour) || a.Value.Instance == nil || a.Value.Instance.Name != "orders" {
		t.Errorf("automated backups: %+v, %v", a.Value, err)
	}
	if a, err = state.Get[backup.Automated](t.Context(), s.store, state.Automated(newID)); err != nil || a.Value.Repository != "main" || a.Value.Second != "far" ||
		a.Value.SecondRegion != "eu-west-1" || a.Value.SecondKey != "key-2" || a.Value.Retention != 7 || a.Value.Retained || a.Value.Instance == nil || a.Value.Instance.ResourceID != newID {
		t.Errorf("what is backed up next: %+v, %v", a.Value, err)
	}
	if told := s.events(); !strings.Contains(told, "the snapshot kept, and the automated backups of db-OLD") {
		t.Errorf("the events say:\n%s", told)
	}
}

// Whoever leads does so until the operation has one more record: another one goes on from there.
func TestAnotherOneGoesOnAfterEachRecord(t *testing.T) {
	for _, failed := range []bool{false, true} {
		s := newSite(t, nil)
		terms := 0
		for ; !s.operation().State.Ended(); terms++ {
			if terms > 200 {
				t.Fatalf("it does not end: %+v", s.operation())
			}
			before, err := state.Load[operation.Record](s.cache, state.Operation(opID))
			if err != nil {
				t.Fatal(err)
			}
			stop := s.run()
			testkit.Eventually(t, 20*time.Second, func() error {
				now, err := state.Load[operation.Record](s.cache, state.Operation(opID))
				if err == nil && now.Revision == before.Revision {
					err = fmt.Errorf("it is still %+v", now.Value)
				}
				return err
			})
			stop()
			if failed && s.instance("orders").ClosedBy != "" {
				s.put(state.Delete(s.shotKey())) // then there is nothing to go back to
			}
			s.advance()
		}
		if terms < 3 {
			t.Errorf("only %d led", terms)
		}
		if failed {
			s.untouched("it was deleted")
		} else {
			s.exchanged()
		}
	}
}

func TestWhatFailsChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(*site)
		reason string
	}{
		"no snapshot": {func(s *site) { s.shot(backup.Failed, "the disk is full") }, "the disk is full"},
		"a snapshot that was deleted": {func(s *site) {
			s.put(state.Delete(s.shotKey()))
		}, "it was deleted"},
		"a restore that cannot succeed": {func(s *site) {
			s.shot(backup.Available, "")
			s.put(state.Put(state.Layout(newID), plan.Layout{ID: newID, Members: []plan.Placed{{Name: "m1", Host: "zone-b"}}}),
				state.Put(state.Report("zone-b", member.ID(newID, "m1")), member.Report{Problem: member.RestoreFails, Detail: "WAL file 7 is missing"}))
		}, "WAL file 7 is missing"},
		"a snapshot that is deleted while it is closed": {func(s *site) {
			s.shot(backup.Available, "")
			s.serve(newID)
			s.reaches(stepClose, "ends")
			s.put(state.Delete(s.shotKey()))
			s.told(oldID, true)
		}, "it was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			s.run()
			c.do(s)
			if r := s.ends(operation.Failed); !strings.Contains(r.Reason, c.reason) || len(r.Left) > 0 {
				t.Errorf("%+v", r)
			}
			s.untouched(c.reason)
		})
	}
}

func TestItIsCancelledAtEachStep(t *testing.T) {
	for _, at := range []string{stepSnapshot, stepRestore, stepClose, stepExchange} {
		t.Run(at, func(t *testing.T) {
			s := newSite(t, nil)
			s.run()
			s.reaches(stepSnapshot, "kept")
			for _, next := range []string{stepRestore, stepClose, stepExchange} {
				if s.operation().Step == at {
					break
				}
				if next == stepExchange {
					s.reaches(stepClose, "ends")
					s.lead(newID, "nobody") // then it waits there
				}
				s.advance()
				s.reaches(next, "")
			}
			s.cancel()
			s.ends(operation.Cancelled)
			s.untouched("cancelled by me")
		})
	}
}

// It is not closed while what is to take its place does not serve, nor while a snapshot is made that
// somebody asked for.
func TestItIsClosedAsLateAsPossible(t *testing.T) {
	s := newSite(t, nil)
	other, err := operation.New("snap-other", backup.Take, s.operation().About, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.put(state.Put(state.Operation(other.ID), other))
	s.run()
	s.shot(backup.Available, "")
	s.serve(newID)
	s.reaches(stepClose, "the operation snap-other (backup) ends first")
	s.lead(newID, "nobody")
	other.State = operation.Done
	s.put(state.Put(state.Operation(other.ID), other))
	s.reaches(stepClose, "it has no primary that serves")
	if s.instance("orders").ClosedBy != "" {
		t.Error("it is closed")
	}
	s.lead(newID, "m1")
	s.reaches(stepClose, "m1 on host zone-a ends")
}

// What is acknowledged while it is closed has to get into the archive, and a clone that was asked for
// has to get its data.
func TestItIsNotClosedWhileWALWaitsOrACloneIsMade(t *testing.T) {
	s := newSite(t, nil)
	at := state.Report("zone-a", member.ID(oldID, "m1"))
	report, err := state.Get[member.Report](t.Context(), s.store, at)
	if err != nil {
		t.Fatal(err)
	}
	is := func(a member.Archived) {
		report.Value.Archived = &a
		s.put(state.Put(at, report.Value))
	}
	s.cloned("copy", plan.Layout{ID: "db-COPY"})
	is(member.Archived{Failing: "the bucket is full"})
	s.run()
	s.shot(backup.Available, "")
	s.serve(newID)
	s.reaches(stepClose, "its WAL is not archived: the bucket is full")
	is(member.Archived{Broken: "000000010000000000000007"})
	s.reaches(stepClose, "WAL was given up")
	s.lead(oldID, "")
	s.reaches(stepClose, "it has no primary just now")
	s.put(state.Put(state.Live("zone-b"), member.Liveness{}))
	s.reaches(stepClose, "host zone-b is silent")
	s.lead(oldID, "m1")
	is(member.Archived{})
	s.put(state.Put(state.Live("zone-b"), member.Liveness{Alive: true}))
	s.reaches(stepClose, "its clone copy gets its data first")
	if s.instance("orders").ClosedBy != "" {
		t.Error("it is closed")
	}
	s.put(state.Put(state.Layout("db-COPY"), plan.Layout{ID: "db-COPY", Restored: true}))
	s.reaches(stepClose, "m1 on host zone-a ends")
}

// Somebody else is seen to lead only when all processes have ended: it is that one's word that counts.
func TestWhoLedIsSeenLate(t *testing.T) {
	s := newSite(t, nil)
	stop := s.run()
	s.shot(backup.Available, "")
	s.serve(newID)
	s.reaches(stepClose, "ends")
	stop()
	s.lead(oldID, "m2")
	s.told(oldID, true)
	s.put(state.Put(state.Report("zone-b", member.ID(oldID, "m2")), member.Report{Generation: 6, Unarchived: "WAL waits"}))
	s.run()
	s.ends(operation.Failed)
	s.untouched("not in the archive")
}

// A clone that never gets its data is not waited for.
func TestACloneThatFailsIsNotWaitedFor(t *testing.T) {
	for name, layout := range map[string]plan.Layout{
		"nobody can make it": {ID: "db-COPY", Unrestorable: "what it copies is gone"},
		"its member cannot":  {ID: "db-COPY", Members: []plan.Placed{{Name: "m1", Host: "zone-b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			s.cloned("copy", layout)
			s.put(state.Put(state.Report("zone-b", member.ID("db-COPY", "m1")), member.Report{Problem: member.RestoreFails}))
			s.run()
			s.shot(backup.Available, "")
			s.serve(newID)
			s.reaches(stepClose, "m1 on host zone-a ends")
		})
	}
}

// Whoever asks for a clone as the database is closed does not lose it.
func TestACloneThatIsAskedForAsItCloses(t *testing.T) {
	s := newSite(t, nil)
	s.run()
	s.shot(backup.Available, "")
	s.serve(newID)
	s.reaches(stepClose, "ends")
	s.cloned("copy", plan.Layout{ID: "db-COPY"})
	s.told(oldID, true)
	if r := s.ends(operation.Failed); !strings.Contains(r.Reason, "has not got its data: wait until copy is available, or delete it") {
		t.Errorf("%+v", r)
	}
	s.untouched("wait until copy is available")
}

// A clone that does not get its data in an hour is not waited for any longer, and not taken from its owner.
func TestACloneIsNotWaitedForForEver(t *testing.T) {
	s := newSite(t, nil)
	s.cloned("copy", plan.Layout{ID: "db-COPY"})
	stop := s.run()
	s.shot(backup.Available, "")
	s.serve(newID)
	s.reaches(stepClose, "its clone copy gets its data first")
	stop()
	r := s.operation()
	r.StepBegan = r.StepBegan.Add(-longestClone)
	s.put(state.Put(state.Operation(r.ID), r))
	s.run()
	s.ends(operation.Failed)
	s.untouched("wait until copy is available")
}

// A failover that went on as the database was closed: the word of the last primary counts.
func TestWhoLedLastHasTheLastWAL(t *testing.T) {
	for name, c := range map[string]struct {
		led    string // as it is closed
		forget string
		lacks  []string // WAL of m1, and of m2
		fails  bool
	}{
		"a new primary lacks it":      {led: "m2", lacks: []string{"", "WAL waits"}, fails: true},
		"the one before lacks it":     {led: "m2", lacks: []string{"WAL waits", ""}},
		"the last one's host is gone": {led: "m2", forget: "zone-b", lacks: []string{"WAL waits", ""}, fails: true},
		"that of another one is gone": {led: "m1", forget: "zone-b", lacks: []string{"", "WAL waits"}},
		"nobody leads when they end":  {lacks: []string{"WAL waits", ""}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			s.run()
			s.shot(backup.Available, "")
			s.serve(newID)
			s.reaches(stepClose, "ends")
			s.lead(oldID, c.led)
			s.reaches(stepClose, "m1 on host zone-a ends")
			if c.led == "m2" {
				testkit.Eventually(t, 20*time.Second, func() error {
					if led := s.operation().Notes[noteLed]; led != c.led {
						return fmt.Errorf("%s led", led)
					}
					return nil
				})
			}
			if c.forget != "" {
				s.put(state.Delete(state.Host(c.forget)))
			}
			s.told(oldID, false)
			for n, host := range []string{"zone-b", "zone-a"} { // the first one ends last
				name := fmt.Sprintf("m%d", 2-n)
				s.put(state.Put(state.Report(host, member.ID(oldID, name)), member.Report{Generation: 6, Unarchived: c.lacks[1-n]}))
			}
			if c.fails {
				s.ends(operation.Failed)
				s.untouched("not in the archive")
				return
			}
			s.ends(operation.Done)
			s.exchanged()
		})
	}
}

// Nobody could restore what only the closed database has: it is opened again.
func TestItIsOpenedAgainIfTheLastWALIsNotArchived(t *testing.T) {
	for _, retention := range []int{7, 0} {
		s := newSite(t, func(old, inside *spec.Instance) { old.BackupRetention, inside.BackupRetention = retention, retention })
		s.run()
		s.shot(backup.Available, "")
		s.serve(newID)
		s.reaches(stepClose, "ends")
		s.told(oldID, false)
		for n, why := range []string{"WAL waits to be archived", "it was not shut down"} { // the second one was not the primary
			host := []string{"zone-a", "zone-b"}[n]
			s.put(state.Put(state.Report(host, member.ID(oldID, fmt.Sprintf("m%d", n+1))), member.Report{Generation: 6, Unarchived: why}))
		}
		if retention == 0 {
			s.ends(operation.Done)
			continue
		}
		if r := s.ends(operation.Failed); !strings.Contains(r.Reason, "not in the archive: WAL waits to be archived; see that WAL is archived") {
			t.Errorf("%+v", r)
		}
		s.untouched("WAL waits to be archived")
	}
}

// A primary on a host that is silent may acknowledge writes.
func TestASilentHostIsWaitedFor(t *testing.T) {
	s := newSite(t, nil)
	s.run()
	s.shot(backup.Available, "")
	s.serve(newID)
	s.reaches(stepClose, "ends")
	s.put(state.Put(state.Live("zone-b"), member.Liveness{}))
	s.told(oldID, true)
	s.reaches(stepClose, "host zone-b is silent")
	s.put(state.Delete(state.Host("zone-b"))) // an operator forgets it
	s.ends(operation.Done)
	s.exchanged()
}

func TestTheManagedPasswordGoesAlong(t *testing.T) {
	sealer, err := secret.NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	made, password := secret.New(shop, oldID, false, "boss", 4, time.Now(), sealer)
	s := newSite(t, func(old, inside *spec.Instance) {
		old.Managed, inside.Managed = true, true
		inside.PasswordSerial = 9 // the data are of a database that counted so far
	})
	s.put(state.Put(state.Secret(oldID), made))
	s.run()
	s.shot(backup.Available, "")
	s.serve(newID)
	s.reaches(stepClose, "ends")
	s.told(oldID, true)
	s.ends(operation.Done)
	moved, err := state.Get[secret.Secret](t.Context(), s.store, state.Secret(newID))
	if err != nil || moved.Value.ARN() != made.ARN() || moved.Value.Database != newID || moved.Value.Current.Serial != s.instance("orders").PasswordSerial || moved.Value.Current.Serial != 9 {
		t.Fatalf("%+v, %v", moved.Value, err)
	}
	if got, err := sealer.Open(moved.Value, moved.Value.Current); err != nil || got != password {
		t.Errorf("opened: %v", err)
	}
	if _, _, there := s.cache.Raw(state.Secret(oldID)); there {
		t.Error("it is still that of the old one")
	}
}

func TestWithoutAutomatedBackupsNoneStay(t *testing.T) {
	s := newSite(t, func(old, inside *spec.Instance) { old.BackupRetention, inside.BackupRetention = 0, 0 })
	s.put(state.Delete(state.Automated(oldID)))
	s.run()
	s.shot(backup.Available, "")
	s.serve(newID)
	s.reaches(stepClose, "ends")
	s.told(oldID, true)
	s.ends(operation.Done)
	if told := s.events(); !strings.Contains(told, "see the snapshot kept.") {
		t.Errorf("the events say:\n%s", told)
	}
}
