package backup

import (
	"fmt"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// TestARoundOfAThousand: the keeper looks at a thousand databases with a week of backups in far less
// than the time between two rounds.
func TestARoundOfAThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes 25,000 records")
	}
	s := newSite(t)
	leading := s.elect()
	now := time.Now().UTC()
	var ops []state.Op
	for n := range 1000 {
		i := s.instanceQuick(&ops, fmt.Sprintf("d%04d", n))
		a := backup.Automated{Scope: shop, Name: i.Name, Database: i.ResourceID, Repository: "main", Retention: 7, Window: now, Made: now, Attempt: 1}
		a.Keep(&i, nil)
		ops = append(ops, state.Put(state.Automated(i.ResourceID), a), state.Put(state.BackupPart(i.ResourceID, "main"), backup.Part{About: aboutOf(i), Repository: "main"}),
			state.Put(state.Drill(i.ResourceID), backup.DrillRecord{Database: i.ResourceID, Began: now}))
		for day := range 7 {
			at := now.Add(-time.Duration(day) * backup.Day)
			b := backup.Backup{Database: i.ResourceID, Repository: "main", Label: fmt.Sprintf("B%d", day), Kind: backup.Full, Automated: true, Stop: at}
			shot := backup.Snapshot{Scope: shop, Name: fmt.Sprintf("rds:%s-%d", i.Name, day), Automated: true, State: backup.Available, Database: i.ResourceID, Repository: "main", Label: b.Label, Taken: at}
			shot.Keep(&i, nil)
			ops = append(ops, state.Put(state.Backup(i.ResourceID, "main", b.Label), b), state.Put(snapshotKey(shot), shot))
		}
		s.backups.tidied[state.BackupPart(i.ResourceID, "main")] = now
	}
	for n := range 500 {
		r, err := operation.New(fmt.Sprintf("auto-%d", n), backup.Take, operation.About{Scope: shop, Name: "x", Database: "db-X"}, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		r.State, r.Ended = operation.Done, now
		ops = append(ops, state.Put(state.Operation(r.ID), r))
	}
	if _, err := s.store.CommitEach(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	if err := s.backups.fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round := range 4 {
		began := time.Now()
		s.backups.round(t.Context(), leading, now, round%2 == 0)
		took := time.Since(began)
		t.Logf("parts %t: %s", round%2 == 0, took)
		if round > 1 && took > roundEvery/2 {
			t.Errorf("a round takes %s", took)
		}
	}
	if all := s.cache.Keys(state.JobRoot); len(all) > 0 {
		t.Errorf("%q", all)
	}
}

// instanceQuick adds the records of a database that serves.
func (s *site) instanceQuick(ops *[]state.Op, name string) spec.Instance {
	i := spec.Instance{Common: spec.Common{
		Scope: shop, Name: name, ResourceID: "db-" + name, Major: 15, Generation: 1, BackupWindow: "03:00-03:30", BackupRetention: 7,
	}}
	id := member.ID(i.ResourceID, "m1")
	*ops = append(*ops, state.Put(state.Instance(shop.Account, shop.Region, name), i), state.Put(state.Layout(i.ResourceID), layoutOf(i.ResourceID)),
		state.Put(state.Report("zone-a", id), member.Report{Ready: true, Archived: &member.Archived{}}),
		state.Put(state.Assign("zone-a", id), member.Assignment{ID: id, Archive: &member.Archive{Repositories: []string{"main"}}}))
	return i
}

func layoutOf(id string) plan.Layout {
	return plan.Layout{ID: id, Created: true, Members: []plan.Placed{{Name: "m1", Host: "zone-a"}}}
}
